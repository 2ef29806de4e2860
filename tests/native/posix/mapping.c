/* mmap: bytes of a file in memory, and what is refused. */
#define SUBJECT "map"
#include "posix.h"
#include <sys/mman.h>

static char *mapped(int fd, size_t length, int protection, int flags, off_t at)
{
    char *map = mmap(NULL, length, protection, flags, fd, at);
    say("%s", map == MAP_FAILED ? error_name(errno) : "mapped");
    if (map == MAP_FAILED)
        _exit(0);
    return map;
}

CASE(private_bytes_are_read)
{
    char *map = mapped(ten(O_RDONLY), 10, PROT_READ, MAP_PRIVATE, 0);
    bytes(map, 10);
}
CASE(shared_bytes_are_read)
{
    char *map = mapped(ten(O_RDONLY), 10, PROT_READ, MAP_SHARED, 0);
    bytes(map, 10);
}
CASE(private_writes_stay_private)
{
    int fd = ten(O_RDONLY);
    char *map = mapped(fd, 10, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0);
    map[0] = 'X';
    bytes(map, 10);
    say_fd_content(fd);
}
CASE(shared_writes_reach_the_file)
{
    int fd = ten(O_RDWR);
    char *map = mapped(fd, 10, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    memcpy(map + 2, "MAP", 3);
    ret(msync(map, 10, MS_SYNC));
    say_fd_content(fd);
    ret(munmap(map, 10));
    say_content("f");
}
CASE(shared_writes_reach_the_file_after_unmapping)
{
    int fd = ten(O_RDWR);
    char *map = mapped(fd, 10, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    memcpy(map + 2, "MAP", 3);
    ret(munmap(map, 10));
    say_content("f");
}
CASE(a_mapping_outlives_its_descriptor)
{
    int fd = ten(O_RDWR);
    char *map = mapped(fd, 10, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    ret(close(fd));
    memcpy(map, "AFTER", 5);
    ret(munmap(map, 10));
    say_content("f");
}
CASE(a_mapping_outlives_its_name)
{
    int fd = ten(O_RDWR);
    char *map = mapped(fd, 10, PROT_READ, MAP_SHARED, 0);
    ret(unlink("f"));
    ret(close(fd));
    bytes(map, 10);
}
CASE(the_rest_of_the_last_page_is_zero)
{
    char *map = mapped(ten(O_RDONLY), 4096, PROT_READ, MAP_PRIVATE, 0);
    bytes(map + 8, 4);
}
CASE(a_part_is_mapped_at_a_page)
{
    make_large("f", 100000);
    char *map = mapped(open_file("f", O_RDONLY), 20000, PROT_READ, MAP_PRIVATE, 65536);
    bytes(map, 20000);
}
CASE(a_large_file_is_mapped_whole)
{
    make_large("f", 600000);
    char *map = mapped(open_file("f", O_RDONLY), 600000, PROT_READ, MAP_SHARED, 0);
    bytes(map, 600000);
}
CASE(shared_writes_to_a_large_file_land_where_they_should)
{
    make_large("f", 600000);
    char *map = mapped(open_file("f", O_RDWR), 600000, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    for (long at = 1000; at < 600000; at += 61440)
        memset(map + at, 'M', 5000);
    ret(munmap(map, 600000));
    say_content("f");
}
CASE(the_offset_must_be_of_whole_pages)
{
    int fd = ten(O_RDONLY);
    ret(mmap(NULL, 10, PROT_READ, MAP_PRIVATE, fd, 5) == MAP_FAILED ? -1 : 0);
}
CASE(no_length_is_invalid)
{
    int fd = ten(O_RDONLY);
    ret(mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0);
}
CASE(neither_shared_nor_private_is_invalid)
{
    int fd = ten(O_RDONLY);
    ret(mmap(NULL, 10, PROT_READ, 0, fd, 0) == MAP_FAILED ? -1 : 0);
}
CASE(a_write_only_descriptor_is_refused)
{
    int fd = ten(O_WRONLY);
    ret(mmap(NULL, 10, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    ret(mmap(NULL, 10, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0);
}
CASE(a_read_only_descriptor_is_refused_for_shared_writing)
{
    int fd = ten(O_RDONLY);
    ret(mmap(NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
}
CASE(a_closed_descriptor_is_refused) { ret(mmap(NULL, 10, PROT_READ, MAP_SHARED, 999, 0) == MAP_FAILED ? -1 : 0); }
CASE(a_directory_is_refused)
{
    int fd = open_file(".", O_RDONLY);
    ret(mmap(NULL, 10, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
}
CASE(behind_the_end_is_a_bus_error)
{
    char *map = mapped(ten(O_RDONLY), 8192, PROT_READ, MAP_SHARED, 0);
    bytes(map + 5000, 1);
}
CASE(a_mapping_may_change_its_protection)
{
    char *map = mapped(ten(O_RDWR), 10, PROT_READ, MAP_SHARED, 0);
    ret(mprotect(map, 4096, PROT_READ | PROT_WRITE));
    map[0] = 'P';
    ret(munmap(map, 10));
    say_content("f");
}
CASE(a_mapping_is_shared_with_a_child)
{
    char *map = mapped(ten(O_RDWR), 10, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    pid_t pid = need(fork());
    if (pid == 0) {
        memcpy(map, "CHILD", 5);
        _exit(0);
    }
    finish(pid);
    bytes(map, 10);
}
CASE(writes_show_in_a_shared_mapping)
{
    int fd = ten(O_RDWR);
    char *map = mapped(fd, 10, PROT_READ, MAP_SHARED, 0);
    ret(pwrite(fd, "LATER", 5, 3));
    bytes(map, 10);
}
CASE(two_mappings_show_the_same)
{
    int fd = ten(O_RDWR);
    char *one = mapped(fd, 10, PROT_READ | PROT_WRITE, MAP_SHARED, 0), *two = mapped(fd, 10, PROT_READ, MAP_SHARED, 0);
    memcpy(one, "BOTH", 4);
    bytes(two, 10);
}
CASE(advice_on_a_mapping_is_taken)
{
    char *map = mapped(ten(O_RDONLY), 10, PROT_READ, MAP_SHARED, 0);
    ret(madvise(map, 10, MADV_SEQUENTIAL));
    ret(madvise(map, 10, MADV_WILLNEED));
    bytes(map, 10);
}
