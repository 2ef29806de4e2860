/* The content of the test file: making it, checking it, and saying what is wrong with a word that does not fit. See content.h. */
#include "content.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WORD_BYTES = 8 };

/* The finaliser of splitmix64: a bijection, so no two positions share a hash. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t word_of(uint64_t position, uint32_t stamp)
{
    uint64_t hash = mix(position);
    uint64_t check = ((hash | 1) * (stamp ^ 0x5bd1e995u)) >> 32;
    check ^= hash >> 32;
    return check << 32 | (stamp ^ (uint32_t)hash);
}

static uint32_t stamp_in(uint64_t word, uint64_t position)
{
    return (uint32_t)word ^ (uint32_t)mix(position);
}

uint32_t content_stamp(uint32_t run, unsigned phase, unsigned rank)
{
    return (run & 0xffffu) << 16 | (phase & 3u) << 14 | (rank & (CONTENT_RANKS_MAX - 1u));
}

void content_make(unsigned char *buf, uint64_t offset, size_t length, uint32_t stamp)
{
    uint64_t end = offset + length;
    while (offset < end) {
        uint64_t word = word_of(offset / WORD_BYTES, stamp);
        unsigned skip = offset % WORD_BYTES;
        unsigned take = WORD_BYTES - skip;
        if (take > end - offset)
            take = (unsigned)(end - offset);
        memcpy(buf, (unsigned char *)&word + skip, take);
        buf += take;
        offset += take;
    }
}

static int rule_allows(struct content_rule rule, uint32_t stamp)
{
    unsigned phase = stamp >> 14 & 3u;
    if (rule.unknown)
        return phase == CONTENT_PHASE_FILL || phase == CONTENT_PHASE_WRITE;
    return stamp >= rule.first && stamp <= rule.last;
}

static void remember(struct content_check *check, uint32_t stamp)
{
    for (unsigned i = check->seen_count; i-- > 0;)
        if (check->seen[i] == stamp)
            return;
    if (check->seen_count == sizeof check->seen / sizeof check->seen[0]) {
        memmove(check->seen, check->seen + 1, sizeof check->seen - sizeof check->seen[0]);
        check->seen_count--;
    }
    check->seen[check->seen_count++] = stamp;
}

static int byte_fits(unsigned char found, uint64_t offset, uint32_t stamp)
{
    uint64_t word = word_of(offset / WORD_BYTES, stamp);
    return ((unsigned char *)&word)[offset % WORD_BYTES] == found;
}

/* How many bytes of part of a word, or of a word that several writers share, are not a legal writer's. */
static unsigned unfit_bytes(const struct content_check *check, const unsigned char *buf, uint64_t offset, unsigned length, struct content_rule rule)
{
    unsigned unfit = 0;
    for (unsigned i = 0; i < length; i++) {
        int fits = rule.holes && buf[i] == 0;
        if (rule.unknown) {
            for (unsigned s = 0; s < check->seen_count && !fits; s++)
                fits = byte_fits(buf[i], offset + i, check->seen[s]);
        } else {
            for (uint64_t stamp = rule.first; stamp <= rule.last && !fits; stamp++)
                fits = byte_fits(buf[i], offset + i, (uint32_t)stamp);
        }
        unfit += !fits;
    }
    return unfit;
}

static void note_error(struct content_check *check, const unsigned char *buf, uint64_t offset, unsigned length, struct content_rule rule)
{
    if (check->errors == 0) {
        check->first_offset = offset;
        check->first_found = 0;
        memcpy(&check->first_found, buf, length);
        check->first_bytes = length;
        check->first_rule = rule;
    }
    check->errors += length;
}

static int all_zero(const unsigned char *buf, unsigned length)
{
    for (unsigned i = 0; i < length; i++)
        if (buf[i] != 0)
            return 0;
    return 1;
}

/*
 * A piece of a word. Where earlier runs with other request sizes wrote, the rest of a word may be of a run of which no whole word is left: such bytes
 * are counted as undecided; but most of a whole word must fit a stamp that was seen, and zeros (four or more) are wrong in any case.
 */
static void verify_part(struct content_check *check, const unsigned char *buf, uint64_t offset, unsigned length, struct content_rule rule)
{
    unsigned unfit = unfit_bytes(check, buf, offset, length, rule);
    int undecidable = rule.unknown && unfit > 0 && !(length >= WORD_BYTES / 2 && all_zero(buf, length)) && (length < WORD_BYTES || unfit <= WORD_BYTES / 2);
    if (unfit > 0 && !undecidable) {
        note_error(check, buf, offset, length, rule);
        return;
    }
    check->undecided_bytes += unfit;
    check->verified_bytes += length - unfit;
}

uint64_t content_verify(struct content_check *check, const unsigned char *buf, uint64_t offset, size_t length, struct content_rule rule)
{
    uint64_t before = check->errors;
    unsigned head = (unsigned)((WORD_BYTES - offset % WORD_BYTES) % WORD_BYTES);
    if (head > length)
        head = (unsigned)length;
    const unsigned char *words = buf + head;
    uint64_t first = (offset + head) / WORD_BYTES;
    size_t count = (length - head) / WORD_BYTES;
    unsigned tail = (unsigned)(length - head - count * WORD_BYTES);
    size_t unfit = 0;
    uint32_t last_seen = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, words + i * WORD_BYTES, WORD_BYTES);
        uint32_t stamp = stamp_in(word, first + i);
        if (word == 0 && rule.holes) {
            check->hole_bytes += WORD_BYTES;
        } else if (word_of(first + i, stamp) != word || !rule_allows(rule, stamp)) {
            if (rule.unknown)
                unfit++; /* looked at again below, when all stamps around it are known */
            else
                note_error(check, words + i * WORD_BYTES, (first + i) * WORD_BYTES, WORD_BYTES, rule);
        } else {
            check->verified_bytes += WORD_BYTES;
            if (rule.unknown && stamp != last_seen) {
                remember(check, stamp);
                last_seen = stamp;
            }
        }
    }
    for (size_t i = 0; i < count && unfit > 0; i++) {
        uint64_t word;
        memcpy(&word, words + i * WORD_BYTES, WORD_BYTES);
        uint32_t stamp = stamp_in(word, first + i);
        if ((word == 0 && rule.holes) || (word_of(first + i, stamp) == word && rule_allows(rule, stamp)))
            continue;
        unfit--;
        verify_part(check, words + i * WORD_BYTES, (first + i) * WORD_BYTES, WORD_BYTES, rule);
    }
    verify_part(check, buf, offset, head, rule);
    verify_part(check, words + count * WORD_BYTES, offset + length - tail, tail, rule);
    return check->errors - before;
}

static void print_bytes(char *text, size_t text_bytes, uint64_t word, unsigned skip, unsigned count)
{
    text[0] = '\0';
    for (unsigned i = 0; i < count && 2 * i + 3 <= text_bytes; i++)
        snprintf(text + 2 * i, text_bytes - 2 * i, "%02x", ((unsigned char *)&word)[skip + i]);
}

static void print_stamp(char *text, size_t text_bytes, uint32_t stamp)
{
    const char *phase = (stamp >> 14 & 3u) == CONTENT_PHASE_FILL ? "fill" : "write";
    snprintf(text, text_bytes, "the %s phase of run %u, rank %u", phase, stamp >> 16, stamp & (CONTENT_RANKS_MAX - 1u));
}

static void explain_found(const struct content_check *check, uint64_t file_bytes, char *text, size_t text_bytes)
{
    uint64_t word = check->first_found;
    char who[96];
    if (word == 0) {
        snprintf(text, text_bytes, "zeros");
        return;
    }
    if (check->first_bytes < WORD_BYTES) {
        snprintf(text, text_bytes, "part of a word that no legal writer wrote");
        return;
    }
    uint64_t here = check->first_offset / WORD_BYTES;
    for (uint64_t step = 0; step <= file_bytes / WORD_BYTES; step++) {
        uint64_t position = step == 0 ? here : step - 1;
        uint32_t stamp = stamp_in(word, position);
        struct content_rule any = {.unknown = 1};
        if (!rule_allows(any, stamp) || word_of(position, stamp) != word)
            continue;
        print_stamp(who, sizeof who, stamp);
        if (position == here)
            snprintf(text, text_bytes, "this offset's content by %s", who);
        else
            snprintf(text, text_bytes, "the content of offset %" PRIu64 " by %s", position * WORD_BYTES, who);
        return;
    }
    snprintf(text, text_bytes, "bytes that no run of this program wrote");
}

void content_explain(const struct content_check *check, uint64_t file_bytes, char *text, size_t text_bytes)
{
    unsigned skip = check->first_offset % WORD_BYTES;
    uint64_t word = word_of(check->first_offset / WORD_BYTES, check->first_rule.first);
    char expected[2 * WORD_BYTES + 1], found[2 * WORD_BYTES + 1], who[96], what[192];
    print_bytes(found, sizeof found, check->first_found, 0, check->first_bytes);
    explain_found(check, file_bytes, what, sizeof what);
    if (check->first_rule.unknown) {
        snprintf(text, text_bytes, "at offset %" PRIu64 " expected content of any run, found %s: %s", check->first_offset, found, what);
        return;
    }
    print_bytes(expected, sizeof expected, word, skip, check->first_bytes);
    print_stamp(who, sizeof who, check->first_rule.first);
    snprintf(text, text_bytes, "at offset %" PRIu64 " expected %s (%s%s), found %s: %s", check->first_offset, expected, who,
             check->first_rule.first == check->first_rule.last ? "" : " or a later rank", found, what);
}
