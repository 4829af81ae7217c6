/* scan(): the rows of a chunk of a trace as columns, in one pass over its bytes and without a Python object per row.

   Python allocates all memory that the caller sees (scanning.py says how it is laid out); this file only fills it, checks each
   write against its size, and gives up (returns None) where something does not fit or the text is no strict JSON. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "row.h"

/* Grows whenever what scan() is given or fills changes: one built from another version of this file is not used. */
#define LAYOUT 2

/* Columns that have a bit per row: numbers, words, the attributes. */
enum { BITS = NUMBERS + WORDS + 1, ATTRIBUTES = NUMBERS + WORDS };
/* What `counts` tells: rows, other rows, those that communicate, bytes of attributes, args that name modules; then values per column, and distinct words per column. */
enum { ROWS, OTHERS, COLLECTIVES, ATTRIBUTE_BYTES, HIERARCHIES, VALUES, DISTINCT = VALUES + BITS, COUNTS = DISTINCT + WORDS };

typedef struct {
    int64_t capacity, row, others, collectives;
    int64_t *numbers; /* [NUMBERS][capacity] */
    int32_t *codes;   /* [WORDS][capacity] */
    int32_t *phases;  /* [capacity] */
    uint8_t *bits;    /* [BITS][(capacity + 7) / 8] */
    int32_t *other;   /* [3][capacity]: row, first byte, byte behind it */
    int32_t *parts;   /* [capacity][1 + COLLECTIVE_PARTS]: row, then what it says of its communication, -1 for nothing */
    int32_t *ends;    /* [capacity + 1]: where the attributes of each row begin */
    uint8_t *text;    /* of the attributes */
    int64_t text_size, text_capacity;
    int64_t filled[NUMBERS + WORDS]; /* rows of a column that are written, values or zeros */
    int64_t values[BITS];
    Words words[WORDS];
    Row now;
} Scan;

static inline void set_bit(Scan *scan, int column)
{
    int64_t width = (scan->capacity + 7) / 8;
    uint8_t *bits = scan->bits + column * width;
    if (!scan->values[column]++)
        memset(bits, 0, (size_t)width);
    bits[scan->row >> 3] |= (uint8_t)(1 << (scan->row & 7));
}

static inline void put_number(Scan *scan, int column, int64_t number)
{
    int64_t *numbers = scan->numbers + column * scan->capacity;
    while (scan->filled[column] < scan->row)
        numbers[scan->filled[column]++] = 0;
    numbers[scan->row] = number;
    scan->filled[column] = scan->row + 1;
    set_bit(scan, column);
}

static bool put_word(Scan *scan, int column, Place at, size_t length, Place end)
{
    int32_t number = number_of(&scan->words[column], at, length, end);
    if (number < 0)
        return false;
    int32_t *codes = scan->codes + column * scan->capacity;
    int64_t *filled = &scan->filled[NUMBERS + column];
    while (*filled < scan->row)
        codes[(*filled)++] = 0;
    codes[scan->row] = number;
    *filled = scan->row + 1;
    set_bit(scan, NUMBERS + column);
    return true;
}

/* A value as a word, without its blanks: these are taken out at the end of the attributes, where there is room. */
static bool put_compact(Scan *scan, int column, const Value *value, Place end)
{
    size_t length = (size_t)(value->end - value->start);
    if (!value->blanks)
        return put_word(scan, column, value->start, length, end);
    if ((int64_t)length > scan->text_capacity - scan->text_size)
        return false;
    uint8_t *room = scan->text + scan->text_size, *behind = without_blanks(value->start, value->end, room);
    return put_word(scan, column, room, (size_t)(behind - room), behind);
}

/* A text without its quotes, or a number. */
static bool put_inside(Scan *scan, int column, const Value *value, Place end)
{
    int quote = is_text(value);
    return put_word(scan, column, value->start + quote, (size_t)(value->end - value->start - 2 * quote), end);
}

/* What a row says of its communication. */
static bool put_collective(Scan *scan, Place end)
{
    const Row *row = &scan->now;
    int32_t *parts = scan->parts + scan->collectives++ * (1 + COLLECTIVE_PARTS);
    *parts++ = (int32_t)scan->row;
    for (int meaning = COLLECTIVE_NAME; meaning <= SRC_RANK; meaning++, parts++) {
        *parts = -1;
        if (!(row->known & BIT(meaning)))
            continue;
        const Value *value = row->meant[meaning];
        int quote = is_text(value);
        *parts = number_of(&scan->words[COLLECTIVE], value->start + quote, (size_t)(value->end - value->start - 2 * quote), end);
        if (*parts < 0)
            return false;
    }
    return true;
}

static inline bool add(Scan *scan, const void *letters, size_t length)
{
    if ((int64_t)length > scan->text_capacity - scan->text_size)
        return false;
    memcpy(scan->text + scan->text_size, letters, length);
    scan->text_size += (int64_t)length;
    return true;
}

/* A member before its value, with the comma that stands between it and the one before. */
static bool add_member(Scan *scan, bool first, const char *name, const Value *value)
{
    return add(scan, first ? "{" : ",", 1) && add(scan, name, strlen(name)) &&
           add(scan, value->start, (size_t)(value->end - value->start));
}

/* What has no column, as one JSON object: the category, what flows have besides, and the args. */
static bool put_attributes(Scan *scan)
{
    const Row *row = &scan->now;
    bool first = true;
    if (has(row, CAT)) {
        if (!add_member(scan, first, "\"cat\":", &row->top[CAT]))
            return false;
        first = false;
    }
    if (row->phase != SLICE) {
        if (!add_member(scan, first, "\"ph\":", &row->top[PH]))
            return false;
        first = false;
    }
    if (has(row, SCOPE) && !add_member(scan, first, "\"s\":", &row->top[SCOPE]))
        return false;
    if (has(row, BP)) {
        if (!add_member(scan, first, "\"bp\":", &row->top[BP]))
            return false;
        first = false;
    }
    const Arg *args = row->args;
    int count = has(row, ARGS) ? row->arg_count : 0;
    if (count && !row->args_blanks && !(row->known & LEAVES)) {
        if (!add(scan, first ? "{" : ",", 1) ||
            !add(scan, args[0].name, (size_t)(args[count - 1].value.end - args[0].name)))
            return false;
        first = false;
    } else {
        for (int i = 0; i < count; i++) {
            if (row->known & LEAVES & BIT(args[i].meaning))
                continue;
            Place name = args[i].name, end = args[i].value.end;
            if (!add(scan, first ? "{" : ",", 1) || end - name > scan->text_capacity - scan->text_size)
                return false;
            first = false;
            if (row->args_blanks)
                scan->text_size = without_blanks(name, end, scan->text + scan->text_size) - scan->text;
            else
                add(scan, name, (size_t)(end - name));
        }
    }
    if (first)
        return true;
    set_bit(scan, ATTRIBUTES);
    return add(scan, "}", 1);
}

/* Write a plain row's columns. */
static bool put_row(Scan *scan, Place end)
{
    static const int MEMBERS[] = {[CAT_WORD] = CAT, [NAME_WORD] = NAME, [PID_WORD] = PID, [TID_WORD] = TID};
    const Row *row = &scan->now;
    const Value *top = row->top;
    for (int column = 0; column < NUMBERS; column++)
        if (row->numbered >> column & 1)
            put_number(scan, column, row->numbers[column]);
    for (int column = CAT_WORD; column <= TID_WORD; column++) {
        const Value *value = &top[MEMBERS[column]];
        if (!has(row, MEMBERS[column]))
            continue;
        /* Pids keep their quotes, which tell "1" from 1. */
        bool good = column <= NAME_WORD ? put_inside(scan, column, value, end)
                                        : put_word(scan, column, value->start, (size_t)(value->end - value->start), end);
        if (!good)
            return false;
    }
    if (row->phase == METADATA || row->phase == COUNTER) {
        Value args = top[ARGS];
        args.blanks = row->args_blanks;
        if (has(row, ARGS) && !put_compact(scan, ARGS_TEXT, &args, end))
            return false;
    }
    if (row->known) {
        const Value *const *meant = row->meant;
        int shapes = row->known & BIT(SHAPES_FIRST) ? SHAPES_FIRST : SHAPES_SECOND;
        int label = row->known & BIT(NAME_ARG) ? NAME_ARG : LABELS_ARG;
        if (row->known & BIT(shapes) && !put_compact(scan, SHAPES, meant[shapes], end))
            return false;
        if (row->known & BIT(DTYPES_ARG) && !put_compact(scan, DTYPES, meant[DTYPES_ARG], end))
            return false;
        if (row->known & BIT(STACK_ARG) && !put_inside(scan, STACK, meant[STACK_ARG], end))
            return false;
        if (row->known & BIT(label) && !put_inside(scan, LABEL, meant[label], end))
            return false;
        if (row->known & OF_COLLECTIVE && !put_collective(scan, end))
            return false;
    }
    return put_attributes(scan);
}

/* The whole text, rows with commas between them. False where it is no strict JSON, or something does not fit. */
static bool scan_text(Scan *scan, Place at, Place end)
{
    Place begin = at;
    at = past_blanks(at, end);
    for (;;) {
        if (at >= end || scan->row == scan->capacity)
            return false;
        Place start = at;
        if (!(at = read_row(at, end, &scan->now)))
            return false;
        scan->ends[scan->row] = (int32_t)scan->text_size;
        if (judge(&scan->now)) {
            if (!put_row(scan, end))
                return false;
        } else {
            scan->other[scan->others] = (int32_t)scan->row;
            scan->other[scan->capacity + scan->others] = (int32_t)(start - begin);
            scan->other[2 * scan->capacity + scan->others] = (int32_t)(at - begin);
            scan->others++;
        }
        scan->phases[scan->row++] = scan->now.phase;
        at = past_blanks(at, end);
        if (at == end)
            break;
        if (*at != ',')
            return false;
        at = past_blanks(at + 1, end);
    }
    scan->ends[scan->row] = (int32_t)scan->text_size;
    for (int column = 0; column < NUMBERS; column++)
        for (int64_t i = scan->filled[column]; scan->values[column] && i < scan->row; i++)
            scan->numbers[column * scan->capacity + i] = 0;
    for (int column = 0; column < WORDS; column++)
        for (int64_t i = scan->filled[NUMBERS + column]; scan->values[NUMBERS + column] && i < scan->row; i++)
            scan->codes[column * scan->capacity + i] = 0;
    return true;
}

PyDoc_STRVAR(bound_doc, "bound(text): as many rows as the text can have, reckoned by its opening braces.");

static PyObject *bound(PyObject *module, PyObject *argument)
{
    Py_buffer text;
    (void)module;
    if (PyObject_GetBuffer(argument, &text, PyBUF_SIMPLE))
        return NULL;
    const uint8_t *letters = text.buf;
    Py_ssize_t count = 0;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t begin = 0; begin < text.len; begin += 255) {
        /* In stretches whose sum fits a byte, so that the compiler adds many at once. */
        Py_ssize_t stop = text.len - begin < 255 ? text.len : begin + 255;
        uint8_t sum = 0;
        for (Py_ssize_t i = begin; i < stop; i++)
            sum = (uint8_t)(sum + (letters[i] == '{'));
        count += sum;
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&text);
    return PyLong_FromSsize_t(count);
}

PyDoc_STRVAR(scan_doc,
             "scan(text, numbers, codes, phases, bits, other, parts, ends, attributes, letters, offsets, counts): fill the buffers.\n\n"
             "True when they hold the rows of `text`, False where it is no strict JSON or does not fit.");

static PyObject *scan(PyObject *module, PyObject *arguments)
{
    enum { NUMBERS_AT, CODES_AT, PHASES_AT, BITS_AT, OTHER_AT, PARTS_AT, ENDS_AT, TEXT_AT, LETTERS_AT, OFFSETS_AT, COUNTS_AT, BUFFERS };
    Py_buffer text, into[BUFFERS];
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*w*w*w*w*w*w*w*w*w*w*w*", &text, &into[0], &into[1], &into[2], &into[3], &into[4],
                          &into[5], &into[6], &into[7], &into[8], &into[9], &into[10]))
        return NULL;
    int64_t capacity = into[PHASES_AT].len / 4, width = (capacity + 7) / 8, letters = into[LETTERS_AT].len / WORDS;
    bool fits = capacity > 0 && text.len < INT32_MAX && into[TEXT_AT].len < INT32_MAX && letters < INT32_MAX &&
                into[NUMBERS_AT].len / 8 / NUMBERS >= capacity && into[CODES_AT].len / 4 / WORDS >= capacity &&
                into[BITS_AT].len / BITS >= width && into[OTHER_AT].len / 4 / 3 >= capacity &&
                into[PARTS_AT].len / 4 / (1 + COLLECTIVE_PARTS) >= capacity &&
                into[ENDS_AT].len / 4 > capacity && into[OFFSETS_AT].len / 4 / WORDS > capacity &&
                into[COUNTS_AT].len / 8 >= COUNTS;
    Scan *scan = fits ? calloc(1, sizeof(Scan)) : NULL;
    bool good = false;
    if (scan) {
        int64_t *counts = into[COUNTS_AT].buf;
        scan->capacity = capacity;
        scan->numbers = into[NUMBERS_AT].buf;
        scan->codes = into[CODES_AT].buf;
        scan->phases = into[PHASES_AT].buf;
        scan->bits = into[BITS_AT].buf;
        scan->other = into[OTHER_AT].buf;
        scan->parts = into[PARTS_AT].buf;
        scan->ends = into[ENDS_AT].buf;
        scan->text = into[TEXT_AT].buf;
        scan->text_capacity = into[TEXT_AT].len;
        for (int i = 0; i < WORDS; i++) {
            Words *words = &scan->words[i];
            words->letters = (uint8_t *)into[LETTERS_AT].buf + i * letters;
            words->capacity = letters;
            words->offsets = (int32_t *)into[OFFSETS_AT].buf + i * (capacity + 1);
            words->offsets[0] = 0;
            words->limit = (int32_t)(capacity < INT32_MAX ? capacity : INT32_MAX);
        }
        Py_BEGIN_ALLOW_THREADS
        good = scan_text(scan, text.buf, (Place)text.buf + text.len);
        Py_END_ALLOW_THREADS
        counts[ROWS] = scan->row;
        counts[OTHERS] = scan->others;
        counts[COLLECTIVES] = scan->collectives;
        counts[ATTRIBUTE_BYTES] = scan->text_size;
        counts[HIERARCHIES] = scan->now.hierarchies;
        for (int i = 0; i < BITS; i++)
            counts[VALUES + i] = scan->values[i];
        for (int i = 0; i < WORDS; i++) {
            counts[DISTINCT + i] = scan->words[i].count;
            free(scan->words[i].slots);
        }
        free(scan);
    }
    PyBuffer_Release(&text);
    for (int i = 0; i < BUFFERS; i++)
        PyBuffer_Release(&into[i]);
    return PyBool_FromLong(good);
}

static PyMethodDef METHODS[] = {
    {"scan", scan, METH_VARARGS, scan_doc},
    {"bound", bound, METH_O, bound_doc},
    {NULL, NULL, 0, NULL},
};

static int begin(PyObject *module)
{
    know_args();
    return PyModule_AddIntConstant(module, "LAYOUT", LAYOUT);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, begin}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, .m_name = "_scanner", .m_doc = "Rows of a trace as columns.", .m_methods = METHODS, .m_slots = SLOTS};

PyMODINIT_FUNC PyInit__scanner(void) { return PyModuleDef_Init(&MODULE); }
