/* Walking over strict JSON text. Every function takes the place to begin at and the end of the text, never looks at or behind
   that end, and gives the place behind what it walked over, or NULL where that is no strict JSON (or nests too deep). */

#ifndef EXPLORER_JSON_TEXT_H
#define EXPLORER_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef const uint8_t *Place;

#define DEEPEST 60
#if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW_BYTES_FIRST 1
#else
#define LOW_BYTES_FIRST 0
#endif
#define EVERY_BYTE(letter) (0x0101010101010101ULL * (uint64_t)(letter))

typedef struct {
    Place start, end;
    bool blanks;  /* there are blanks between its tokens */
    bool escaped; /* a backslash stands in it */
    bool members; /* an object with members stands in it */
} Value;

static inline uint64_t eight_bytes(Place at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

static inline bool is_digit(uint8_t letter) { return (uint8_t)(letter - '0') < 10; }

static inline Place past_blanks(Place at, Place end)
{
    while (at < end && *at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* Four hexadecimal digits, or -1. */
static int code_point(Place at, Place end)
{
    if (end - at < 4)
        return -1;
    int value = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t letter = at[i];
        int digit = is_digit(letter)                  ? letter - '0'
                    : (letter >= 'a' && letter <= 'f') ? letter - 'a' + 10
                    : (letter >= 'A' && letter <= 'F') ? letter - 'A' + 10
                                                       : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* From a backslash to behind its escape. A surrogate must have its other half. */
static Place past_escape(Place at, Place end)
{
    if (end - at < 2)
        return NULL;
    if (at[1] != 'u')
        return at[1] && strchr("\"\\/bfnrt", at[1]) ? at + 2 : NULL;
    int first = code_point(at + 2, end);
    if (first < 0 || (first >= 0xDC00 && first <= 0xDFFF))
        return NULL;
    at += 6;
    if (first < 0xD800 || first > 0xDBFF)
        return at;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return NULL;
    int second = code_point(at + 2, end);
    return second >= 0xDC00 && second <= 0xDFFF ? at + 6 : NULL;
}

/* From behind the opening quote to the closing one. */
static inline Place closing_quote(Place at, Place end, bool *escaped)
{
    for (;;) {
        /* Eight letters at a time while none of them is a quote, a backslash or a control character. */
        while (end - at >= 8) {
            uint64_t word = eight_bytes(at), quote = word ^ EVERY_BYTE('"'), slash = word ^ EVERY_BYTE('\\');
            uint64_t special = ((quote - EVERY_BYTE(1)) & ~quote) | ((slash - EVERY_BYTE(1)) & ~slash);
            special = (special | ((word - EVERY_BYTE(' ')) & ~word)) & EVERY_BYTE(0x80);
            if (!special) {
                at += 8;
                continue;
            }
#if LOW_BYTES_FIRST
            at += __builtin_ctzll(special) >> 3;
#endif
            break;
        }
        while (at < end && *at != '"' && *at != '\\' && *at >= ' ')
            at++;
        if (at >= end || *at < ' ')
            return NULL;
        if (*at == '"')
            return at;
        *escaped = true;
        if (!(at = past_escape(at, end)))
            return NULL;
    }
}

static inline Place past_number(Place at, Place end)
{
    if (at < end && *at == '-')
        at++;
    if (at >= end || !is_digit(*at))
        return NULL;
    if (*at++ != '0')
        while (at < end && is_digit(*at))
            at++;
    if (at < end && *at == '.') {
        if (++at >= end || !is_digit(*at))
            return NULL;
        while (at < end && is_digit(*at))
            at++;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        if (at >= end || !is_digit(*at))
            return NULL;
        while (at < end && is_digit(*at))
            at++;
    }
    return at;
}

static Place past_literal(Place at, Place end)
{
    static const char *const LITERALS[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(LITERALS[i]);
        if ((size_t)(end - at) >= length && !memcmp(at, LITERALS[i], length))
            return at + length;
    }
    return NULL;
}

/* From the opening quote of a name to its value. `name` gets what is between the quotes. */
static inline Place past_name(Place at, Place end, Value *name)
{
    if (at >= end || *at != '"')
        return NULL;
    name->start = at + 1;
    name->escaped = false;
    if (!(at = closing_quote(at + 1, end, &name->escaped)))
        return NULL;
    name->end = at++;
    name->blanks = false;
    if (at < end && *at != ':') {
        Place colon = past_blanks(at, end);
        name->blanks = colon != at;
        at = colon;
    }
    if (at >= end || *at != ':')
        return NULL;
    Place value = past_blanks(++at, end);
    name->blanks |= value != at;
    return value < end ? value : NULL;
}

/* A value of any kind. */
static Place past_value(Place at, Place end, Value *found)
{
    uint64_t lists = 0; /* one bit per open level, the innermost lowest: 1 a list, 0 an object */
    int depth = 0;
    Value name = {0};
    found->start = at;
    found->blanks = found->escaped = found->members = false;
    for (;;) {
        if (at >= end)
            return NULL;
        if (*at == '"') {
            if (!(at = closing_quote(at + 1, end, &found->escaped)))
                return NULL;
            at++;
        } else if (*at == '[' || *at == '{') {
            bool list = *at == '[';
            Place inside = past_blanks(at + 1, end);
            found->blanks |= inside != at + 1;
            if (inside >= end)
                return NULL;
            at = inside;
            if (*at == (list ? ']' : '}')) {
                at++;
            } else {
                if (depth++ == DEEPEST)
                    return NULL;
                lists = lists << 1 | list;
                if (!list) {
                    found->members = true;
                    if (!(at = past_name(at, end, &name)))
                        return NULL;
                    found->blanks |= name.blanks;
                }
                continue;
            }
        } else if (*at == '-' || is_digit(*at)) {
            if (!(at = past_number(at, end)))
                return NULL;
        } else if (!(at = past_literal(at, end))) {
            return NULL;
        }
        /* A value ended: so do the levels that close here. */
        for (;;) {
            if (!depth) {
                found->end = at;
                return at;
            }
            Place next = past_blanks(at, end);
            found->blanks |= next != at;
            at = next;
            if (at >= end)
                return NULL;
            bool list = lists & 1;
            if (*at == ',') {
                next = past_blanks(++at, end);
                found->blanks |= next != at;
                at = next;
                if (!list) {
                    if (!(at = past_name(at, end, &name)))
                        return NULL;
                    found->blanks |= name.blanks;
                }
                break;
            }
            if (*at != (list ? ']' : '}'))
                return NULL;
            at++;
            lists >>= 1;
            depth--;
        }
    }
}

/* Copies a value without the blanks between its tokens; gives the place behind the copy, which is never longer. */
static uint8_t *without_blanks(Place at, Place end, uint8_t *to)
{
    bool text = false;
    while (at < end) {
        uint8_t letter = *at++;
        if (letter == '"')
            text = !text;
        else if (text && letter == '\\' && at < end) {
            *to++ = letter;
            letter = *at++;
        } else if (!text && letter <= ' ')
            continue;
        *to++ = letter;
    }
    return to;
}

#endif
