/*
 * stdio: a table of small uses of the C library's streams. Each check prints what it saw; the transcript of a run in a directory of managed
 * files must be that of a run in a plain one.
 *
 * usage: stdio DIRECTORY [CHECK]
 */
#include "transcript.h"

#define CHECK(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} checks[] = {CHECK(writes_and_reads), CHECK(appends), CHECK(updates_in_place), CHECK(refuses), CHECK(moves_large_pieces), CHECK(buffers_as_asked),
              CHECK(shares_descriptors), CHECK(leaves_no_trace_of_a_closed_descriptor), CHECK(reopens), CHECK(standard_streams_by_freopen),
              CHECK(standard_streams_by_dup2), CHECK(unlocked_and_locked), CHECK(wide_characters), CHECK(others_are_untouched),
              CHECK(descriptors_by_name), CHECK(temporary_files), CHECK(ends_of_processes)};

int main(int argc, char **argv)
{
    if (argc < 2 || chdir(argv[1]) != 0) {
        fputs("usage: stdio DIRECTORY [CHECK]\n", stderr);
        return 2;
    }
    begin_transcript();
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (argc > 2 && strcmp(argv[2], checks[i].name) != 0) continue;
        for (const char **name = (const char *[]){"f", "g", "h", "new", NULL}; *name; name++) unlink(*name);
        say("%s\n", checks[i].name);
        checks[i].run();
    }
    return 0;
}
