/* Parsing of mpiio's command line: long options, sizes with binary suffixes, and one clear sentence for what does not fit. */
#define _POSIX_C_SOURCE 200809L
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const pattern_names[PATTERN_KINDS] = {"sequential", "interleaved", "strided", "random", "zipf", "nested", "tiles"};

const char *options_pattern_name(enum pattern_kind kind)
{
    return pattern_names[kind];
}

const char *options_usage(void)
{
    return "usage: mpiio --file FILE [options]\n"
           "  --pattern NAME        sequential, interleaved, strided, random, zipf, nested, tiles (default sequential)\n"
           "  --file-size SIZE      default 64MiB; sizes take KiB, MiB, GiB\n"
           "  --request-size SIZE   default 256KiB\n"
           "  --requests N          requests per rank in the write and in the read phase (default: the file once)\n"
           "  --reads N, --writes N the same, one phase\n"
           "  --pieces N            pieces of a request in strided, nested and tiles (default 4)\n"
           "  --region-size SIZE    zipf: regions that differ in popularity (default 1MiB)\n"
           "  --alpha X             zipf: exponent (default 0.8)\n"
           "  --windows N           do the write and the read phase in N equal parts, 1 to 1024 (default 1)\n"
           "  --shift N             zipf: in each window the regions N places further down are the hot ones (default 0)\n"
           "  --window-seconds X    a window begins X seconds after the one before, or later if that takes longer (default 0)\n"
           "  --phases LIST         of fill,write,read,check (default fill,write,read); check reads the whole file\n"
           "  --if-missing-fill     fill only when the file is absent or shorter than its size\n"
           "  --seed N              default 1\n"
           "  --stamp N             1..65535: what this run marks its bytes with (default: drawn anew)\n"
           "  --collective          collective calls\n"
           "  --atomic              MPI atomic mode\n"
           "  --hint KEY=VALUE      MPI-IO hint, repeatable\n"
           "  --fsync               MPI_File_sync in the timed write phase\n"
           "  --no-verify           do not check what is read\n"
           "  --holes-legal         zeros are no error where this run did not write (after a killed run)\n"
           "  --keep, --delete      what becomes of the file (default: keep)\n";
}

/* A decimal number with an optional suffix. Returns 0 or -1. */
static int parse_size(const char *text, uint64_t *size)
{
    static const struct { const char *suffix; unsigned shift; } units[] = {
        {"", 0}, {"B", 0}, {"KiB", 10}, {"K", 10}, {"MiB", 20}, {"M", 20}, {"GiB", 30}, {"G", 30}, {"TiB", 40}, {"T", 40}};
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9')
        return -1;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0)
        return -1;
    for (unsigned i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].suffix) != 0)
            continue;
        if (number > (uint64_t)INT64_MAX >> units[i].shift)
            return -1;
        *size = (uint64_t)number << units[i].shift;
        return 0;
    }
    return -1;
}

static int parse_phases(struct options *options, const char *text)
{
    char copy[64];
    if (strlen(text) >= sizeof copy)
        return -1;
    strcpy(copy, text);
    options->fill = options->write = options->read = options->check = 0;
    for (char *save = NULL, *word = strtok_r(copy, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
        if (strcmp(word, "fill") == 0)
            options->fill = 1;
        else if (strcmp(word, "write") == 0)
            options->write = 1;
        else if (strcmp(word, "read") == 0)
            options->read = 1;
        else if (strcmp(word, "check") == 0)
            options->check = 1;
        else
            return -1;
    }
    return 0;
}

static int parse_pattern(struct options *options, const char *text)
{
    for (int kind = 0; kind < PATTERN_KINDS; kind++) {
        if (strcmp(text, pattern_names[kind]) == 0) {
            options->pattern = (enum pattern_kind)kind;
            return 0;
        }
    }
    return -1;
}

static int parse_hint(struct options *options, char *text)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || options->hints == HINTS_MAX)
        return -1;
    *equals = '\0';
    options->hint_keys[options->hints] = text;
    options->hint_values[options->hints++] = equals + 1;
    return 0;
}

static int parse_real(const char *text, double largest, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return *text != '\0' && *end == '\0' && *number >= 0 && *number <= largest ? 0 : -1;
}

enum { OPT_FILE = 1, OPT_PATTERN, OPT_FILE_SIZE, OPT_REQUEST_SIZE, OPT_REQUESTS, OPT_READS, OPT_WRITES, OPT_PIECES, OPT_REGION_SIZE, OPT_ALPHA,
       OPT_WINDOWS, OPT_SHIFT, OPT_WINDOW_SECONDS, OPT_PHASES, OPT_IF_MISSING_FILL, OPT_SEED, OPT_STAMP, OPT_COLLECTIVE, OPT_ATOMIC, OPT_HINT, OPT_FSYNC, OPT_NO_VERIFY, OPT_HOLES_LEGAL, OPT_KEEP, OPT_DELETE, OPT_HELP };

static const struct option long_options[] = {
    {"file", 1, NULL, OPT_FILE}, {"pattern", 1, NULL, OPT_PATTERN}, {"file-size", 1, NULL, OPT_FILE_SIZE},
    {"request-size", 1, NULL, OPT_REQUEST_SIZE}, {"requests", 1, NULL, OPT_REQUESTS}, {"reads", 1, NULL, OPT_READS},
    {"writes", 1, NULL, OPT_WRITES}, {"pieces", 1, NULL, OPT_PIECES}, {"region-size", 1, NULL, OPT_REGION_SIZE},
    {"alpha", 1, NULL, OPT_ALPHA}, {"windows", 1, NULL, OPT_WINDOWS}, {"shift", 1, NULL, OPT_SHIFT}, {"window-seconds", 1, NULL, OPT_WINDOW_SECONDS},
    {"phases", 1, NULL, OPT_PHASES}, {"if-missing-fill", 0, NULL, OPT_IF_MISSING_FILL},
    {"seed", 1, NULL, OPT_SEED}, {"stamp", 1, NULL, OPT_STAMP}, {"collective", 0, NULL, OPT_COLLECTIVE},
    {"atomic", 0, NULL, OPT_ATOMIC}, {"hint", 1, NULL, OPT_HINT}, {"fsync", 0, NULL, OPT_FSYNC},
    {"no-verify", 0, NULL, OPT_NO_VERIFY}, {"holes-legal", 0, NULL, OPT_HOLES_LEGAL},
    {"keep", 0, NULL, OPT_KEEP}, {"delete", 0, NULL, OPT_DELETE},
    {"help", 0, NULL, OPT_HELP}, {NULL, 0, NULL, 0}};

static int apply(struct options *options, int choice, char *value)
{
    uint64_t number = 0;
    switch (choice) {
    case OPT_FILE: options->file = value; return 0;
    case OPT_PATTERN: return parse_pattern(options, value);
    case OPT_FILE_SIZE: return parse_size(value, &options->file_bytes);
    case OPT_REQUEST_SIZE: return parse_size(value, &options->request_bytes);
    case OPT_REGION_SIZE: return parse_size(value, &options->region_bytes);
    case OPT_PIECES: return parse_size(value, &options->pieces);
    case OPT_SEED: return parse_size(value, &options->seed);
    case OPT_REQUESTS:
        if (parse_size(value, &options->reads) != 0)
            return -1;
        options->writes = options->reads;
        options->reads_given = options->writes_given = 1;
        return 0;
    case OPT_READS: options->reads_given = 1; return parse_size(value, &options->reads);
    case OPT_WRITES: options->writes_given = 1; return parse_size(value, &options->writes);
    case OPT_ALPHA: return parse_real(value, 20, &options->alpha);
    case OPT_WINDOWS: return parse_size(value, &options->windows) != 0 || options->windows < 1 || options->windows > WINDOWS_MAX ? -1 : 0;
    case OPT_SHIFT: return parse_size(value, &options->shift);
    case OPT_WINDOW_SECONDS: return parse_real(value, 86400, &options->window_seconds);
    case OPT_PHASES: return parse_phases(options, value);
    case OPT_STAMP:
        if (parse_size(value, &number) != 0 || number < 1 || number > 65535)
            return -1;
        options->stamp = (uint32_t)number;
        return 0;
    case OPT_HINT: return parse_hint(options, value);
    case OPT_IF_MISSING_FILL: options->fill_if_missing = 1; return 0;
    case OPT_COLLECTIVE: options->collective = 1; return 0;
    case OPT_ATOMIC: options->atomic = 1; return 0;
    case OPT_FSYNC: options->sync = 1; return 0;
    case OPT_NO_VERIFY: options->verify = 0; return 0;
    case OPT_HOLES_LEGAL: options->holes_legal = 1; return 0;
    case OPT_KEEP: options->delete_after = 0; return 0;
    case OPT_DELETE: options->delete_after = 1; return 0;
    default: return -1;
    }
}

int options_parse(struct options *options, int argc, char **argv, char *text, unsigned text_bytes)
{
    *options = (struct options){.pattern = PATTERN_SEQUENTIAL, .request_bytes = 256 << 10, .file_bytes = 64 << 20, .region_bytes = 1 << 20,
                                .alpha = 0.8, .pieces = 4, .windows = 1, .fill = 1, .write = 1, .read = 1, .seed = 1, .verify = 1};
    opterr = 0;
    for (;;) {
        int index = 0;
        int at = optind;
        int choice = getopt_long(argc, argv, "", long_options, &index);
        if (choice == -1)
            break;
        if (choice == OPT_HELP)
            return 1;
        if (choice == '?' || choice == ':') {
            snprintf(text, text_bytes, "%s is no option, or lacks its value; see --help", argv[at]);
            return -1;
        }
        if (apply(options, choice, optarg) != 0) {
            snprintf(text, text_bytes, "--%s does not take \"%s\"; see --help", long_options[index].name, optarg);
            return -1;
        }
    }
    if (optind < argc)
        snprintf(text, text_bytes, "\"%s\" is not an option; see --help", argv[optind]);
    else if (options->file == NULL)
        snprintf(text, text_bytes, "--file is missing: say which file to work on");
    else if (options->request_bytes == 0 || options->request_bytes > 1u << 30)
        snprintf(text, text_bytes, "--request-size must be 1 byte to 1 GiB");
    else if (options->region_bytes == 0 || options->pieces == 0)
        snprintf(text, text_bytes, "--region-size and --pieces must be at least 1");
    else
        return 0;
    return -1;
}
