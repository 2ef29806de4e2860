/*
 * player: plays a workload path with real calls.
 *
 *     mpiexec -n 4 player out.swp DIRECTORY
 *
 * A path (docs/formats.md, Workload path) says for any number of processes which call of POSIX or MPI-IO comes when. The player maps it, expands its loops
 * as it goes, keeps its slack, writes contents that are a function of file and offset, and compares what it reads. At the end rank 0 prints one JSON line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "play.h"

/* A message with a name and why. */
enum { PLAY_LINE_BYTES = 2 * 4096 };
/* What a launcher is given to read it. */
enum { READ_US = 100 * 1000 };

struct options {
    const char *path, *directory;
    double speed;
    int is_fast, replace, prepare_only, is_prepared;
};

static const char usage[] = "usage: mpiexec -n N player [--speed X | --as-fast-as-possible] [--replace] [--prepare | --prepared] PATH DIRECTORY\n"
                            "       player --check N PATH...\n"
                            "       player --requests N RANK PATH\n";

void play_say(const char *text)
{
    char line[4 * PLAY_LINE_BYTES + 1], *to = line;
    for (const unsigned char *at = (const unsigned char *)text; *at && to < line + sizeof line - 9; at++) {
        int is_c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
        if (*at >= 0x20 && *at != 0x7f && !is_c1)
            *to++ = (char)*at;
        else
            to += sprintf(to, "\\x%02x", *at);
        if (is_c1)
            to += sprintf(to, "\\x%02x", *++at);
    }
    *to = '\0';
    fprintf(stderr, "player: %s\n", line);
    fflush(stderr);
}

void play_fail(struct player *player, const char *form, ...)
{
    const struct path_node *node = player->current.node;
    va_list arguments;
    char text[512], line[PLAY_LINE_BYTES];
    /* Others may be inside a collective call, so nothing can be agreed on: who comes first says it, and ends all. */
    if (player->error_said && __atomic_exchange_n(player->error_said, 1, __ATOMIC_SEQ_CST))
        for (;;)
            pause();
    va_start(arguments, form);
    vsnprintf(text, sizeof text, form, arguments);
    va_end(arguments);
    if (node)
        snprintf(line, sizeof line, "rank %d: node %u (%s) on %s: %s", player->rank, player->current.index, op_facts[node->op].name,
                 player->files[node->link].name, text);
    else
        snprintf(line, sizeof line, "rank %d: %s", player->rank, text);
    play_say(line);
    /* A launcher that hears of the abort first may not read the line any more. */
    (void)usleep(READ_US);
    /* The MPI library would say a second time that the program ends. */
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0)
        (void)dup2(nowhere, STDERR_FILENO);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

void play_fail_errno(struct player *player, int error)
{
    play_fail(player, "%s%s", strerror(error), error == ENOSPC ? "; free some space, or play in another directory" : "");
}

void play_require(struct player *player, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    play_ended(player);
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    for (char *line = text; (line = strchr(line, '\n'));)
        *line = ' ';
    play_fail(player, "%s", text);
}

void play_ended(struct player *player)
{
    if (!player->is_fast)
        player->ended_ns = now_ns();
}

/* Before the start all ranks agree on whether they begin; rank 0 says why not. */
static int is_agreed(struct player *player, char *error)
{
    int own = error[0] ? player->rank : player->processes, first;
    MPI_Allreduce(&own, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == player->processes)
        return 1;
    MPI_Bcast(error, PATH_ERROR_BYTES, MPI_CHAR, first, MPI_COMM_WORLD);
    if (player->rank == 0)
        play_say(error);
    return 0;
}

/* Ranks that play different paths, or prepare differently, would wait for each other for ever. */
static void compare(const struct player *player, const struct options *options, char *error)
{
    uint64_t how = (uint64_t)(options->replace | options->prepare_only << 1 | options->is_prepared << 2);
    uint64_t sum = path_sum(&player->path), own[4] = {sum, ~sum, how, ~how}, least[4];
    MPI_Allreduce(own, least, 4, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    if (least[0] != ~least[1])
        snprintf(error, PATH_ERROR_BYTES, "%.300s: ranks have different paths; give all of them the same", options->path);
    else if (least[2] != ~least[3])
        snprintf(error, PATH_ERROR_BYTES, "ranks have different ones of --replace, --prepare and --prepared; give all of them the same");
}

static int parse(int count, char **words, struct options *options, char *error)
{
    *options = (struct options){.speed = 1.0};
    for (int i = 1; i < count; i++) {
        char *end = NULL;
        if (strcmp(words[i], "--as-fast-as-possible") == 0) {
            options->is_fast = 1;
        } else if (strcmp(words[i], "--replace") == 0) {
            options->replace = 1;
        } else if (strcmp(words[i], "--prepare") == 0) {
            options->prepare_only = 1;
        } else if (strcmp(words[i], "--prepared") == 0) {
            options->is_prepared = 1;
        } else if (strcmp(words[i], "--speed") == 0 && i + 1 < count) {
            options->speed = strtod(words[++i], &end);
            if (*end || !(options->speed > 0 && options->speed < 1e9)) {
                snprintf(error, PATH_ERROR_BYTES, "--speed: '%.100s' is no positive number", words[i]);
                return -1;
            }
        } else if (words[i][0] == '-' || options->directory) {
            snprintf(error, PATH_ERROR_BYTES, "'%.100s' is not known", words[i]);
            return -1;
        } else if (!options->path) {
            options->path = words[i];
        } else {
            options->directory = words[i];
        }
    }
    if (options->directory)
        return 0;
    snprintf(error, PATH_ERROR_BYTES, "a path and a directory are needed");
    return -1;
}

/* Looks at paths without MPI: whether they are sound, and whether so many processes can play them. */
static int check(int count, char **words)
{
    int status = 0;
    char error[PATH_ERROR_BYTES];
    unsigned long processes = count > 3 ? strtoul(words[2], NULL, 10) : 0;
    if (processes == 0) {
        fputs(usage, stderr);
        return 2;
    }
    for (int i = 3; i < count; i++) {
        struct path path;
        struct walk walk;
        struct request request;
        unsigned long long walked = 0;
        int is_sound = path_open(&path, words[i], error) == 0;
        int is_playable = is_sound && path_playable(&path, (uint32_t)processes, error) == 0;
        if (is_playable)
            walk_begin(&walk, &path, 0, (uint32_t)processes);
        while (is_playable && walked < 100000 && walk_next(&walk, &request))
            walked++;
        printf("%s\n", is_playable ? "ok" : error);
        status |= !is_playable;
        if (is_sound)
            path_close(&path);
    }
    return status;
}

/* Prints the requests of a rank: operation, file, offset (- = none), size, slack in ns, and whether all ranks wait for each other before it. */
static int list(int count, char **words)
{
    char error[PATH_ERROR_BYTES];
    struct path path;
    struct walk walk;
    struct request request;
    unsigned long processes = count == 5 ? strtoul(words[2], NULL, 10) : 0, rank = count == 5 ? strtoul(words[3], NULL, 10) : 0;
    if (processes == 0 || rank >= processes || processes > PATH_PROCESSES_MAX) {
        fputs(usage, stderr);
        return 2;
    }
    if (path_open(&path, words[4], error) != 0 || path_playable(&path, (uint32_t)processes, error) != 0) {
        play_say(error);
        return 1;
    }
    for (walk_begin(&walk, &path, (uint32_t)rank, (uint32_t)processes); walk_next(&walk, &request);) {
        printf("%s %u ", op_facts[request.node->op].name, request.node->link);
        if (op_facts[request.node->op].position == NONE)
            printf("-");
        else
            printf("%lld", (long long)request.offset);
        printf(" %llu %llu%s\n", (unsigned long long)request.size, (unsigned long long)request.slack_ns, request.is_together ? " together" : "");
    }
    path_close(&path);
    return 0;
}

static void begin_comms(struct player *player)
{
    uint32_t comms = player->path.header->comms;
    player->comms = malloc((comms + 1u) * sizeof *player->comms);
    if (!player->comms)
        play_fail(player, "no memory for communicators");
    MPI_Comm_dup(MPI_COMM_WORLD, &player->all);
    player->comms[0] = MPI_COMM_WORLD;
    for (uint32_t i = 0; i < comms; i++) {
        uint32_t kind = player->path.comms[i].kind;
        player->comms[i] = kind == COMM_SELF ? MPI_COMM_SELF : MPI_COMM_WORLD;
        if (kind >= COMM_BLOCKS)
            MPI_Comm_split(MPI_COMM_WORLD, (int)path_colour(&player->path, i, (uint32_t)player->rank), player->rank, &player->comms[i]);
    }
}

/* How many ranks share this machine, and a word that they share. */
static void begin_node(struct player *player)
{
    MPI_Comm node;
    MPI_Win window;
    MPI_Aint bytes;
    int unit;
    void *own, *shared = NULL;
    cpu_set_t usable;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, player->rank, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &player->node_ranks);
    MPI_Comm_rank(node, &player->node_rank);
    player->cores = sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : 1;
    if (MPI_Win_allocate_shared(player->node_rank == 0 ? (MPI_Aint)sizeof(int) : 0, sizeof(int), MPI_INFO_NULL, node, &own, &window) != MPI_SUCCESS)
        return;
    MPI_Win_shared_query(window, 0, &bytes, &unit, &shared);
    if (player->node_rank == 0)
        *(int *)shared = 0;
    player->error_said = shared;
    MPI_Barrier(node);
}

/* What is there before the run is known to be there. */
static void know_prepared(struct player *player)
{
    for (uint32_t i = 0; i < player->path.header->files; i++)
        if (player->files[i].is_strict)
            known_add(&player->files[i].known, 0, player->path.files[i].bytes);
}

static void play(struct player *player)
{
    struct walk walk;
    uint64_t since = now_ns();
    walk_begin(&walk, &player->path, (uint32_t)player->rank, (uint32_t)player->processes);
    while (walk_next(&walk, &player->current)) {
        const struct request *request = &player->current;
        const struct op_facts *facts = &op_facts[request->node->op];
        if (request->is_together)
            since = pace_together(player);
        if (!player->is_fast && request->slack_ns)
            pace_wait(player, since, request->slack_ns);
        if (request->offset < 0 && (facts->position == EXPLICIT || facts->position == SEEK))
            play_fail(player, "the offset %lld lies before the file's begin", (long long)request->offset);
        player->counts.ops[request->node->op]++;
        player->ended_ns = 0;
        if (facts->layer == MPI)
            mpi_play(player, request, &player->files[request->node->link]);
        else
            posix_play(player, request, &player->files[request->node->link]);
        if (!player->is_fast)
            since = player->ended_ns ? player->ended_ns : now_ns();
    }
    player->current.node = NULL;
    for (uint32_t i = 0; i < player->path.header->files; i++)
        mpi_finish(player, &player->files[i]);
}

/* By number: no part of the workload, so nothing for a trace. */
static int is_directory(const char *name)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        syscall(SYS_close, fd);
    return fd >= 0;
}

static int run(struct player *player, const struct options *options, char *error)
{
    char why[PATH_ERROR_BYTES];
    if (path_open(&player->path, options->path, error) == 0) {
        if (path_playable(&player->path, (uint32_t)player->processes, why) != 0)
            snprintf(error, PATH_ERROR_BYTES, "%.150s: %.350s", options->path, why);
        else if (!is_directory(options->directory))
            snprintf(error, PATH_ERROR_BYTES, "%.300s: is no directory; make it first", options->directory);
    }
    if (!is_agreed(player, error))
        return 1;
    compare(player, options, error);
    if (!error[0])
        files_begin(player, error);
    if (!error[0])
        (void)files_check(player, options->path, options->is_prepared || options->replace, error);
    if (!is_agreed(player, error))
        return 1;
    if (!options->is_prepared)
        (void)files_prepare(player, options->replace, error);
    if (!is_agreed(player, error))
        return 1;
    if (options->prepare_only)
        return 0;
    begin_comms(player);
    begin_node(player);
    pace_begin();
    know_prepared(player);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    play(player);
    report(player, MPI_Wtime() - began);
    return 0;
}

int main(int count, char **words)
{
    static struct player player;
    struct options options;
    char error[PATH_ERROR_BYTES] = "";
    if (count > 1 && strcmp(words[1], "--check") == 0)
        return check(count, words);
    if (count > 1 && strcmp(words[1], "--requests") == 0)
        return list(count, words);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &player.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &player.processes);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    int status = 2;
    if (parse(count, words, &options, error) != 0) {
        if (player.rank == 0) {
            play_say(error);
            fputs(usage, stderr);
        }
    } else {
        player.directory = options.directory;
        player.speed = options.speed;
        player.is_prepared = options.is_prepared;
        player.is_fast = options.is_fast;
        status = run(&player, &options, error);
    }
    uint64_t wrong = player.counts.wrong_bytes, all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return status ? status : all ? 1 : 0;
}
