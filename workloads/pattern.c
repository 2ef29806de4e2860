/* Access patterns as arithmetic; random ones draw from a counter-based generator, so every rank knows every other rank's requests. See pattern.h. */
#include "pattern.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Uniform in 0..bound-1; the bias of the product method is below 2^-32 for any bound that a file has. */
static uint64_t below(uint64_t random, uint64_t bound)
{
    return (uint64_t)((unsigned __int128)random * bound >> 64);
}

static uint64_t largest_divisor_up_to_root(uint64_t number)
{
    uint64_t best = 1;
    for (uint64_t d = 1; d * d <= number; d++)
        if (number % d == 0)
            best = d;
    return best;
}

/* Popularity k (0 = hottest) gets a share proportional to 1 / (k + 1)^alpha; where that region lies is a shuffle fixed by the seed. */
static int init_zipf(struct pattern *pattern, const struct options *options, char *text, size_t text_bytes)
{
    pattern->region_bytes = options->region_bytes;
    pattern->regions = options->file_bytes / options->region_bytes;
    if (pattern->regions == 0 || options->region_bytes % options->request_bytes != 0) {
        snprintf(text, text_bytes, "zipf needs a --region-size that is a multiple of --request-size and not larger than --file-size");
        return -1;
    }
    pattern->cumulative = malloc(pattern->regions * sizeof *pattern->cumulative);
    pattern->rank_to_region = malloc(pattern->regions * sizeof *pattern->rank_to_region);
    if (pattern->cumulative == NULL || pattern->rank_to_region == NULL) {
        snprintf(text, text_bytes, "no memory for %" PRIu64 " zipf regions: use a larger --region-size", pattern->regions);
        return -1;
    }
    double sum = 0;
    for (uint64_t k = 0; k < pattern->regions; k++) {
        sum += pow((double)(k + 1), -options->alpha);
        pattern->cumulative[k] = sum;
        pattern->rank_to_region[k] = k;
    }
    for (uint64_t k = 0; k < pattern->regions; k++)
        pattern->cumulative[k] /= sum;
    for (uint64_t k = pattern->regions - 1; k > 0; k--) {
        uint64_t other = below(mix(mix(options->seed) ^ k), k + 1);
        uint64_t kept = pattern->rank_to_region[k];
        pattern->rank_to_region[k] = pattern->rank_to_region[other];
        pattern->rank_to_region[other] = kept;
    }
    return 0;
}

int pattern_init(struct pattern *pattern, const struct options *options, uint64_t processes, char *text, size_t text_bytes)
{
    *pattern = (struct pattern){.kind = options->pattern, .seed = options->seed, .processes = processes,
                                .request_bytes = options->request_bytes, .pieces = 1, .shift = options->shift};
    if (pattern_needs_view(pattern))
        pattern->pieces = options->pieces;
    if (options->request_bytes % pattern->pieces != 0) {
        snprintf(text, text_bytes, "--request-size must be a multiple of --pieces");
        return -1;
    }
    pattern->granule_bytes = options->request_bytes / pattern->pieces;
    pattern->slots = options->file_bytes / options->request_bytes;
    pattern->requests_max = pattern->slots / processes;
    if (pattern->kind == PATTERN_NESTED) {
        pattern->outer = largest_divisor_up_to_root(pattern->pieces);
        pattern->inner = pattern->pieces / pattern->outer;
        pattern->requests_max -= pattern->requests_max % 2;
    }
    if (pattern->kind == PATTERN_TILES) {
        pattern->outer = largest_divisor_up_to_root(processes);
        pattern->inner = processes / pattern->outer;
    }
    if (pattern->requests_max == 0) {
        snprintf(text, text_bytes, "--file-size is too small: each of %" PRIu64 " processes needs room for %s of %" PRIu64 " bytes", processes,
                 pattern->kind == PATTERN_NESTED ? "two requests" : "one request", options->request_bytes);
        return -1;
    }
    return pattern->kind == PATTERN_ZIPF ? init_zipf(pattern, options, text, text_bytes) : 0;
}

void pattern_free(struct pattern *pattern)
{
    free(pattern->cumulative);
    free(pattern->rank_to_region);
}

int pattern_needs_view(const struct pattern *pattern)
{
    return pattern->kind == PATTERN_STRIDED || pattern->kind == PATTERN_NESTED || pattern->kind == PATTERN_TILES;
}

uint64_t pattern_window(const struct pattern *pattern, unsigned phase, uint64_t request)
{
    return pattern->window_requests[phase] == 0 ? 0 : request / pattern->window_requests[phase];
}

static uint64_t zipf_offset(const struct pattern *pattern, uint64_t draw, uint64_t window)
{
    double share = (double)(draw >> 11) * 0x1p-53;
    uint64_t low = 0, high = pattern->regions - 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (pattern->cumulative[middle] > share)
            high = middle;
        else
            low = middle + 1;
    }
    uint64_t slot = below(mix(draw), pattern->region_bytes / pattern->request_bytes);
    uint64_t moved = (low + pattern->shift % pattern->regions * window) % pattern->regions;
    return pattern->rank_to_region[moved] * pattern->region_bytes + slot * pattern->request_bytes;
}

uint64_t pattern_offset(const struct pattern *pattern, uint64_t rank, unsigned phase, uint64_t request)
{
    uint64_t draw = mix(mix(mix(pattern->seed) ^ (rank << 1 | phase)) ^ request);
    uint64_t i = request % pattern->requests_max;
    uint64_t piece = pattern->granule_bytes, processes = pattern->processes;
    switch (pattern->kind) {
    case PATTERN_SEQUENTIAL: return (rank * pattern->requests_max + i) * pattern->request_bytes;
    case PATTERN_INTERLEAVED: return (i * processes + rank) * pattern->request_bytes;
    case PATTERN_STRIDED: return i * processes * pattern->request_bytes + rank * piece;
    case PATTERN_RANDOM: return below(draw, pattern->slots) * pattern->request_bytes;
    case PATTERN_ZIPF: return zipf_offset(pattern, draw, pattern_window(pattern, phase, request));
    case PATTERN_NESTED: {
        uint64_t group = pattern->inner * processes * piece;
        uint64_t half = pattern->requests_max / 2;
        return i % half * 2 * pattern->outer * group + i / half * group + rank * piece;
    }
    case PATTERN_TILES: {
        uint64_t row = (rank / pattern->inner * pattern->requests_max + i) * pattern->pieces;
        return row * pattern->inner * piece + rank % pattern->inner * piece;
    }
    default: return 0;
    }
}

uint64_t pattern_piece(const struct pattern *pattern, uint64_t first_offset, uint64_t piece)
{
    uint64_t across = pattern->processes * pattern->granule_bytes;
    switch (pattern->kind) {
    case PATTERN_STRIDED: return first_offset + piece * across;
    case PATTERN_NESTED: return first_offset + piece / pattern->inner * 2 * pattern->inner * across + piece % pattern->inner * across;
    case PATTERN_TILES: return first_offset + piece * pattern->inner * pattern->granule_bytes;
    default: return first_offset;
    }
}

unsigned pattern_half(const struct pattern *pattern, uint64_t request)
{
    return pattern->kind == PATTERN_NESTED && request % pattern->requests_max >= pattern->requests_max / 2;
}

uint64_t pattern_view_offset(const struct pattern *pattern, uint64_t request)
{
    uint64_t span = pattern->kind == PATTERN_NESTED ? pattern->requests_max / 2 : pattern->requests_max;
    return request % span * pattern->request_bytes;
}
