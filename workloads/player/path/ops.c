/* The table of operations. */
#include "ops.h"

#define X(id, number, name, layer, moves, position, collective, pending) [number] = {name, layer, moves, position, collective, pending},
const struct op_facts op_facts[OPS_MAX] = {PLAYER_OPS(X)};
#undef X
