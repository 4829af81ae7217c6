/* One row of a trace: finding its members, and deciding whether it looks as Kineto writes rows (then it is plain). What is not
   plain is left to the general reader, so in doubt a row is not. plain.py says the same in numpy; both must stay equal. */

#ifndef EXPLORER_ROW_H
#define EXPLORER_ROW_H

#include "words.h"

#define MOST_ARGS 64

/* Members of the row itself. */
enum { PH, CAT, NAME, PID, TID, TS, DUR, ID, BP, SCOPE, ARGS, TOP };

/* Phases, in the order of their numbers. What else a phase means: */
static const char PHASES[] = "XstfiMCBE";
#define IS_FLOW(phase) ((phase) >= 1 && (phase) <= 3)
enum { SLICE, INSTANT = 4, METADATA, COUNTER };

/* Columns of numbers, and of words. */
enum {
    TS_NS, DUR_NS, IDENT, EXTERNAL, CORRELATION, FLOPS, SEQUENCE, FORWARD, STREAM, DEVICE, SIZE,
    ADDRESS, ALLOCATED, RESERVED, DEVICE_TYPE, MEMORY_DEVICE, NUMBERS
};
enum { CAT_WORD, NAME_WORD, PID_WORD, TID_WORD, SHAPES, DTYPES, STACK, LABEL, ARGS_TEXT, COLLECTIVE, WORDS };

/* Members of args that mean something. FIRST and SECOND are two spellings: the second counts where the first is missing. */
enum {
    OTHER_ARG,
    EXTERNAL_FIRST, EXTERNAL_SECOND, CORRELATION_FIRST, CORRELATION_SECOND, FLOPS_ARG, SEQUENCE_ARG, FORWARD_ARG,
    STREAM_FIRST, STREAM_SECOND, DEVICE_ARG, BYTES_FIRST, BYTES_SECOND,
    SHAPES_FIRST, SHAPES_SECOND, DTYPES_ARG, STACK_ARG,
    UNCOMMON, /* makes the row one for the general reader */
    /* of a communication call, in the order of the column: */
    COLLECTIVE_NAME, GROUP_NAME, GROUP_DESCRIPTION, GROUP_RANKS, IN_ELEMENTS, OUT_ELEMENTS, GROUP_SIZE, ELEMENT_TYPE,
    SEQ, DST_RANK, SRC_RANK,
    /* of a memory event: */
    ADDRESS_ARG, ALLOCATED_ARG, RESERVED_ARG, DEVICE_TYPE_ARG, MEMORY_DEVICE_ARG,
    /* of metadata: */
    NAME_ARG, LABELS_ARG,
    HIERARCHY, /* is counted only */
    MEANINGS
};
#define COLLECTIVE_PARTS (SRC_RANK - COLLECTIVE_NAME + 1)
#define BIT(meaning) (1ULL << (meaning))

#define KNOWN(name, meaning) {name, sizeof name - 1, meaning}
static const struct { const char *name; size_t length; int meaning; } KNOWN_ARGS[] = {
    KNOWN("External id", EXTERNAL_FIRST), KNOWN("external id", EXTERNAL_SECOND),
    KNOWN("correlation", CORRELATION_FIRST), KNOWN("correlation_id", CORRELATION_SECOND),
    KNOWN("flops", FLOPS_ARG), KNOWN("Sequence number", SEQUENCE_ARG), KNOWN("Fwd thread id", FORWARD_ARG),
    KNOWN("stream", STREAM_FIRST), KNOWN("stream_id", STREAM_SECOND), KNOWN("device", DEVICE_ARG),
    KNOWN("bytes", BYTES_FIRST), KNOWN("Bytes", BYTES_SECOND),
    KNOWN("Input Dims", SHAPES_FIRST), KNOWN("Input dims", SHAPES_SECOND), KNOWN("Input type", DTYPES_ARG),
    KNOWN("Call stack", STACK_ARG),
    KNOWN("size(Byte)", UNCOMMON), KNOWN("connection_id", UNCOMMON), KNOWN("Physic Stream Id", UNCOMMON),
    KNOWN("stream id", UNCOMMON),
    KNOWN("Collective name", COLLECTIVE_NAME), KNOWN("Process Group Name", GROUP_NAME),
    KNOWN("Process Group Description", GROUP_DESCRIPTION), KNOWN("Process Group Ranks", GROUP_RANKS),
    KNOWN("In msg nelems", IN_ELEMENTS), KNOWN("Out msg nelems", OUT_ELEMENTS), KNOWN("Group size", GROUP_SIZE),
    KNOWN("dtype", ELEMENT_TYPE), KNOWN("Seq", SEQ), KNOWN("Dst Rank", DST_RANK), KNOWN("Src Rank", SRC_RANK),
    KNOWN("Addr", ADDRESS_ARG), KNOWN("Total Allocated", ALLOCATED_ARG), KNOWN("Total Reserved", RESERVED_ARG),
    KNOWN("Device Type", DEVICE_TYPE_ARG), KNOWN("Device Id", MEMORY_DEVICE_ARG),
    KNOWN("name", NAME_ARG), KNOWN("labels", LABELS_ARG),
    KNOWN("Module Hierarchy", HIERARCHY),
};
#define KNOWN_COUNT ((int)(sizeof KNOWN_ARGS / sizeof *KNOWN_ARGS))

/* Those that have a column of their own and so leave the attributes. */
#define LEAVES                                                                                                             \
    (BIT(CORRELATION_FIRST) | BIT(BYTES_FIRST) | BIT(BYTES_SECOND) | BIT(SHAPES_FIRST) | BIT(SHAPES_SECOND) | BIT(DTYPES_ARG))

/* Columns of numbers that args give: spellings, and what besides an integer counts as one. */
enum { INTEGER, INTEGER_OR_QUOTED, INTEGER_OR_QUOTED_HEX };
static const struct { int column, first, second, kind; } NUMBER_ARGS[] = {
    {EXTERNAL, EXTERNAL_FIRST, EXTERNAL_SECOND, INTEGER},
    {CORRELATION, CORRELATION_FIRST, CORRELATION_SECOND, INTEGER},
    {FLOPS, FLOPS_ARG, OTHER_ARG, INTEGER},
    {SEQUENCE, SEQUENCE_ARG, OTHER_ARG, INTEGER},
    {FORWARD, FORWARD_ARG, OTHER_ARG, INTEGER},
    {STREAM, STREAM_FIRST, STREAM_SECOND, INTEGER_OR_QUOTED_HEX},
    {DEVICE, DEVICE_ARG, OTHER_ARG, INTEGER_OR_QUOTED_HEX},
    {SIZE, BYTES_FIRST, BYTES_SECOND, INTEGER_OR_QUOTED},
    {ADDRESS, ADDRESS_ARG, OTHER_ARG, INTEGER},
    {ALLOCATED, ALLOCATED_ARG, OTHER_ARG, INTEGER},
    {RESERVED, RESERVED_ARG, OTHER_ARG, INTEGER},
    {DEVICE_TYPE, DEVICE_TYPE_ARG, OTHER_ARG, INTEGER},
    {MEMORY_DEVICE, MEMORY_DEVICE_ARG, OTHER_ARG, INTEGER},
};
/* The meanings that every row has, and those that only some rows have. */
#define OF_ANY_ROW (BIT(COLLECTIVE_NAME) - 2)
#define OF_COLLECTIVE (BIT(ADDRESS_ARG) - BIT(COLLECTIVE_NAME))
#define OF_MEMORY (BIT(NAME_ARG) - BIT(ADDRESS_ARG))
#define OF_METADATA (BIT(HIERARCHY) - BIT(NAME_ARG))

typedef struct {
    Place name; /* its opening quote */
    Value value;
    uint64_t hash;
    int meaning;
} Arg;

typedef struct {
    bool plain;
    int phase;
    bool args_blanks;
    uint32_t present; /* bit per member of the row itself */
    Value top[TOP];
    int arg_count;
    Arg args[MOST_ARGS];
    uint64_t known; /* bit per meaning that its args have */
    const Value *meant[MEANINGS];
    int64_t hierarchies; /* args of all rows so far that name modules */
    uint32_t numbered; /* bit per column of numbers that has one */
    int64_t numbers[NUMBERS];
} Row;

/* Names of args by their hash; filled once, before any scan. */
static uint8_t known_slots[256];

static void know_args(void)
{
    static bool done;
    if (done)
        return;
    done = true;
    for (int i = 0; i < KNOWN_COUNT; i++) {
        Place name = (Place)KNOWN_ARGS[i].name;
        uint8_t slot = (uint8_t)hash_of(name, KNOWN_ARGS[i].length, name + KNOWN_ARGS[i].length);
        while (known_slots[slot])
            slot++;
        known_slots[slot] = (uint8_t)(i + 1);
    }
}

static inline int meaning_of(Place name, size_t length, uint64_t hash)
{
    for (uint8_t slot = (uint8_t)hash; known_slots[slot]; slot++) {
        int known = known_slots[slot] - 1;
        if (KNOWN_ARGS[known].length == length && !memcmp(KNOWN_ARGS[known].name, name, length))
            return KNOWN_ARGS[known].meaning;
    }
    return OTHER_ARG;
}

static inline int top_of(Place name, size_t length)
{
    switch (length) {
    case 1:
        return *name == 's' ? SCOPE : TOP;
    case 2:
        return !memcmp(name, "ph", 2)   ? PH
               : !memcmp(name, "ts", 2) ? TS
               : !memcmp(name, "id", 2) ? ID
               : !memcmp(name, "bp", 2) ? BP
                                        : TOP;
    case 3:
        return !memcmp(name, "cat", 3)   ? CAT
               : !memcmp(name, "pid", 3) ? PID
               : !memcmp(name, "tid", 3) ? TID
               : !memcmp(name, "dur", 3) ? DUR
                                         : TOP;
    case 4:
        return !memcmp(name, "name", 4) ? NAME : !memcmp(name, "args", 4) ? ARGS : TOP;
    default:
        return TOP;
    }
}

static inline bool is_text(const Value *value) { return *value->start == '"'; }

static inline bool says(const Value *text, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(text->end - text->start) == length + 2 && !memcmp(text->start + 1, word, length);
}

/* An integer of at most 18 digits. */
static bool integer(Place at, Place end, int64_t *number)
{
    bool negative = at < end && *at == '-';
    at += negative;
    if (at >= end || end - at > 18 || (*at == '0' && end - at > 1))
        return false;
    int64_t value = 0;
    for (; at < end; at++) {
        if (!is_digit(*at))
            return false;
        value = value * 10 + (*at - '0');
    }
    *number = negative ? -value : value;
    return true;
}

static bool hexadecimal(Place at, Place end, int64_t *number)
{
    if (end - at < 3 || end - at > 17 || at[0] != '0' || at[1] != 'x')
        return false;
    int64_t value = 0;
    for (at += 2; at < end; at++) {
        uint8_t letter = *at | 0x20;
        if (is_digit(*at))
            value = value << 4 | (*at - '0');
        else if (letter >= 'a' && letter <= 'f')
            value = value << 4 | (letter - 'a' + 10);
        else
            return false;
    }
    *number = value;
    return true;
}

/* Microseconds in decimal digits as nanoseconds; half a nanosecond goes to the even one. At most 9e15 before the point
   and 9 digits behind it, no exponent. */
static bool nanoseconds(Place at, Place end, int64_t *number)
{
    bool negative = at < end && *at == '-';
    at += negative;
    int64_t value = 0;
    Place begin = at;
    while (at < end && is_digit(*at) && at - begin < 17)
        value = value * 10 + (*at++ - '0');
    if (at == begin || at - begin > 16 || value > 9000000000000000)
        return false;
    int64_t finer = 0, unit = 1;
    int digits = 0;
    if (at < end && *at == '.') {
        for (at++; at < end && is_digit(*at) && digits < 9; at++, digits++) {
            if (digits < 3) {
                value = value * 10 + (*at - '0');
            } else {
                finer = finer * 10 + (*at - '0');
                unit *= 10;
            }
        }
    }
    if (at != end)
        return false;
    for (; digits < 3; digits++)
        value *= 10;
    if (2 * finer > unit || (2 * finer == unit && value & 1))
        value++;
    *number = negative ? -value : value;
    return true;
}

/* The args from their opening brace on. */
static Place read_args(Place at, Place end, Row *row)
{
    uint64_t seen = 0;
    Value name;
    Place next = past_blanks(at + 1, end);
    row->top[ARGS].start = at;
    row->args_blanks = next != at + 1;
    at = next;
    if (at < end && *at == '}') {
        row->top[ARGS].end = at + 1;
        return at + 1;
    }
    for (;;) {
        Place quote = at;
        Value value;
        if (!(at = past_name(at, end, &name)) || !(at = past_value(at, end, &value)))
            return NULL;
        if (name.escaped || value.members || row->arg_count == MOST_ARGS) {
            row->plain = false;
        } else {
            size_t length = (size_t)(name.end - name.start);
            Arg *arg = &row->args[row->arg_count];
            *arg = (Arg){quote, value, hash_of(name.start, length, end), OTHER_ARG};
            arg->meaning = meaning_of(name.start, length, arg->hash);
            row->hierarchies += arg->meaning == HIERARCHY;
            row->args_blanks |= value.blanks | name.blanks;
            /* Equal names have equal hashes: a bit of a mask, then a look at all of them. */
            uint64_t bit = 1ULL << (arg->hash >> 58);
            if (seen & bit)
                for (int i = 0; i < row->arg_count; i++)
                    if (row->args[i].hash == arg->hash)
                        row->plain = false;
            seen |= bit;
            row->arg_count++;
        }
        next = past_blanks(at, end);
        row->args_blanks |= next != at;
        at = next;
        if (at >= end)
            return NULL;
        if (*at == '}') {
            row->top[ARGS].end = at + 1;
            return at + 1;
        }
        if (*at != ',')
            return NULL;
        next = past_blanks(at + 1, end);
        row->args_blanks |= next != at + 1;
        at = next;
    }
}

/* A row and its members; `plain` says that it is an object of known members, each once. */
static Place read_row(Place at, Place end, Row *row)
{
    Value name, value;
    row->plain = true;
    row->args_blanks = false;
    row->present = 0;
    row->arg_count = 0;
    if (*at != '{') {
        row->plain = false;
        return past_value(at, end, &value);
    }
    at = past_blanks(at + 1, end);
    if (at < end && *at == '}') {
        row->plain = false;
        return at + 1;
    }
    for (;;) {
        if (!(at = past_name(at, end, &name)))
            return NULL;
        int member = name.escaped ? TOP : top_of(name.start, (size_t)(name.end - name.start));
        bool again = member == TOP || row->present >> member & 1;
        if (member == ARGS && *at == '{' && !again) {
            if (!(at = read_args(at, end, row)))
                return NULL;
        } else {
            if (!(at = past_value(at, end, &value)))
                return NULL;
            if (again || member == ARGS || value.members)
                row->plain = false;
            else
                row->top[member] = value;
        }
        if (member < TOP)
            row->present |= 1u << member;
        at = past_blanks(at, end);
        if (at >= end)
            return NULL;
        if (*at == '}')
            return at + 1;
        if (*at != ',')
            return NULL;
        at = past_blanks(at + 1, end);
    }
}

static inline bool has(const Row *row, int member) { return row->present >> member & 1; }

/* A text as it stands between its quotes, or an integer: what reads the same whoever reads it. */
static bool simple_text(const Value *value)
{
    int64_t number;
    if (is_text(value))
        return !value->escaped;
    return integer(value->start, value->end, &number) && (number || *value->start != '-');
}

/* Whether the args are all that the columns can take; their numbers. */
static bool judge_args(Row *row)
{
    uint64_t known = 0;
    for (int i = 0; i < row->arg_count; i++) {
        int meaning = row->args[i].meaning;
        known |= BIT(meaning);
        row->meant[meaning] = &row->args[i].value;
    }
    uint64_t looked_at = OF_ANY_ROW;
    if (known & (BIT(COLLECTIVE_NAME) | BIT(GROUP_NAME)))
        looked_at |= OF_COLLECTIVE;
    if (has(row, NAME) && says(&row->top[NAME], "[memory]"))
        looked_at |= OF_MEMORY;
    if (row->phase == METADATA)
        looked_at |= OF_METADATA;
    row->known = known &= looked_at;
    if (!known)
        return true;
    if (known & BIT(UNCOMMON) || (known & BIT(SHAPES_FIRST) && known & BIT(SHAPES_SECOND)) ||
        (known & BIT(BYTES_FIRST) && known & BIT(BYTES_SECOND)))
        return false;
    for (size_t i = 0; i < sizeof NUMBER_ARGS / sizeof *NUMBER_ARGS; i++) {
        int first = NUMBER_ARGS[i].first, second = NUMBER_ARGS[i].second;
        int meaning = known & BIT(first) ? first : known & BIT(second) ? second : OTHER_ARG;
        if (meaning == OTHER_ARG)
            continue;
        const Value *value = row->meant[meaning];
        Place start = value->start, end = value->end;
        int64_t *number = &row->numbers[NUMBER_ARGS[i].column];
        bool good;
        if (!is_text(value))
            good = integer(start, end, number);
        else if (NUMBER_ARGS[i].kind == INTEGER_OR_QUOTED_HEX)
            good = hexadecimal(start + 1, end - 1, number);
        else
            good = NUMBER_ARGS[i].kind == INTEGER_OR_QUOTED && integer(start + 1, end - 1, number) &&
                   (*number || end - start == 3);
        if (!good)
            return false;
        row->numbered |= 1u << NUMBER_ARGS[i].column;
    }
    for (int meaning = SHAPES_FIRST; meaning <= DTYPES_ARG; meaning++)
        if (known & BIT(meaning) && *row->meant[meaning]->start != '[')
            return false;
    if (known & BIT(STACK_ARG) && !is_text(row->meant[STACK_ARG]))
        return false;
    if (known & (OF_COLLECTIVE | OF_METADATA))
        for (int meaning = COLLECTIVE_NAME; meaning < HIERARCHY; meaning++)
            if (known & (OF_COLLECTIVE | OF_METADATA) & BIT(meaning) && !simple_text(row->meant[meaning]))
                return false;
    return true;
}

/* Whether a row that was read is plain; its phase and numbers, and what its args mean. */
static bool judge(Row *row)
{
    const Value *top = row->top;
    row->known = row->numbered = 0;
    row->phase = SLICE;
    if (!row->plain || !has(row, PH) || top[PH].end - top[PH].start != 3 || !is_text(&top[PH]))
        return false;
    const char *phase = strchr(PHASES, top[PH].start[1]);
    if (!phase || !*phase)
        return false;
    row->phase = (int)(phase - PHASES);
    bool flow = IS_FLOW(row->phase), usual = flow || row->phase == SLICE;
    if (flow ? has(row, ARGS) : has(row, ID) || has(row, BP))
        return false;
    if (has(row, SCOPE) && (usual || !is_text(&top[SCOPE])))
        return false;
    for (int member = CAT; member <= BP; member = member == CAT ? BP : BP + 1)
        if (has(row, member) && (!is_text(&top[member]) || top[member].escaped))
            return false;
    if (has(row, NAME)) {
        /* A name that could be "[memory]" in other letters is not for us. */
        Place name = top[NAME].start;
        if (!is_text(&top[NAME]) || (top[NAME].escaped && (name[1] == '[' || (name[1] == '\\' && name[2] == 'u'))))
            return false;
    }
    for (int member = PID; member <= TID; member++)
        if (has(row, member) && !is_text(&top[member]) && !simple_text(&top[member]))
            return false;
    for (int member = TS; member <= DUR; member++)
        if (has(row, member)) {
            int column = member == TS ? TS_NS : DUR_NS;
            if (!nanoseconds(top[member].start, top[member].end, &row->numbers[column]))
                return false;
            row->numbered |= 1u << column;
        }
    if (has(row, ID)) {
        if (is_text(&top[ID]) || !simple_text(&top[ID]))
            return false;
        integer(top[ID].start, top[ID].end, &row->numbers[IDENT]);
        row->numbered |= 1u << IDENT;
    }
    /* Python functions and arrows have nothing in their args that has a column. */
    if (has(row, CAT) && (says(&top[CAT], "python_function") || says(&top[CAT], "ac2g")))
        return usual && !(has(row, NAME) && says(&top[NAME], "[memory]"));
    return judge_args(row);
}

#endif
