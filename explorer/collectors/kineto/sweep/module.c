/* nest(), nearest() and pair(): one pass over the events of a trace each, as nesting.py does them with numpy, and pairing.py with
   lists, where this is not built.

   All memory is the caller's; sizes are checked before anything is written, and the interpreter's lock is given up meanwhile. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Grows whenever what a function is given or fills changes: one built from another version of this file is not used. */
#define LAYOUT 2

typedef struct {
    int32_t place;
    int64_t end, reached; /* `reached`: the latest end of an event that it encloses directly */
} Open;

/* `start` and `end` are in sweep order (by start, longer first). False when there is no memory. */
static bool sweep(const int64_t *start, const int64_t *end, int32_t *parent, int64_t *own, int64_t count)
{
    int64_t room = 64, depth = 0;
    Open *open = malloc((size_t)room * sizeof(Open));
    if (open == NULL)
        return false;
    for (int64_t i = 0; i < count; i++) {
        /* An event of no length needs an encloser that ends strictly later. What ends too early encloses nothing that
           follows either: later events start no earlier and lie behind it or inside this one. */
        bool no_length = end[i] == start[i];
        while (depth > 0 && (no_length ? open[depth - 1].end <= end[i] : open[depth - 1].end < end[i]))
            depth--;
        own[i] = end[i] - start[i];
        parent[i] = -1;
        if (depth > 0) {
            Open *around = &open[depth - 1];
            parent[i] = around->place;
            /* Of overlapping children only the union counts. */
            int64_t begin = start[i] > around->reached ? start[i] : around->reached;
            if (end[i] > begin) {
                own[around->place] -= end[i] - begin;
                around->reached = end[i];
            }
        }
        if (depth == room) {
            Open *larger = realloc(open, (size_t)room * 2 * sizeof(Open));
            if (larger == NULL) {
                free(open);
                return false;
            }
            open = larger;
            room *= 2;
        }
        open[depth++] = (Open){(int32_t)i, end[i], start[i]};
    }
    free(open);
    return true;
}

enum { UNKNOWN = -2 };

/* answer[i]: i itself where it is wanted, else the innermost wanted event around it, -1 for none. False where `parent` points
   outside the events. Every chain of parents ends. */
static bool find_nearest(const int32_t *parent, const uint8_t *wanted, int32_t *answer, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (parent[i] < -1 || parent[i] >= count)
            return false;
        answer[i] = wanted[i] ? (int32_t)i : parent[i] < 0 ? -1 : UNKNOWN;
    }
    for (int64_t i = 0; i < count; i++) {
        if (answer[i] != UNKNOWN)
            continue;
        int64_t above = i;
        int64_t steps = 0;
        while (answer[above] == UNKNOWN) {
            above = parent[above];
            if (++steps > count)
                return false;
        }
        int32_t found = answer[above];
        for (above = i; answer[above] == UNKNOWN; above = parent[above])
            answer[above] = found;
    }
    return true;
}

/* partner[i]: of a begin its end, of an end its begin, -1 for none; see pairing.py. `key` counts from 0 to less than `count`. */
static bool find_partners(const int32_t *key, const int32_t *name, const uint8_t *begins, int32_t *partner, int64_t count)
{
    /* The innermost open event of each key, and the one around each open event. */
    int32_t *innermost = malloc((size_t)(count ? count : 1) * sizeof(int32_t));
    bool good = innermost != NULL;
    for (int64_t i = 0; good && i < count; i++)
        innermost[i] = -1;
    for (int64_t i = 0; good && i < count; i++) {
        if (key[i] < 0 || key[i] >= count) {
            good = false;
        } else if (begins[i]) {
            /* While it is open, `partner` holds the one around it, as a number below -1. */
            partner[i] = -2 - (innermost[key[i]] + 1);
            innermost[key[i]] = (int32_t)i;
        } else {
            int32_t inside = -1, found = innermost[key[i]];
            while (found >= 0 && name[i] >= 0 && name[found] != name[i]) {
                inside = found;
                found = -2 - partner[found] - 1;
            }
            partner[i] = found;
            if (found >= 0) {
                int32_t around = -2 - partner[found] - 1;
                if (inside >= 0)
                    partner[inside] = -2 - (around + 1);
                else
                    innermost[key[i]] = around;
                partner[found] = (int32_t)i;
            }
        }
    }
    for (int64_t i = 0; good && i < count; i++)
        if (partner[i] < -1)
            partner[i] = -1;
    free(innermost);
    return good;
}

static int take(PyObject *args, int count, const int *width, const bool *written, Py_buffer *into)
{
    Py_ssize_t length = -1;
    if (PyTuple_Size(args) != count) {
        PyErr_Format(PyExc_TypeError, "%d arrays are needed", count);
        return -1;
    }
    for (int k = 0; k < count; k++) {
        int flags = PyBUF_C_CONTIGUOUS | (written[k] ? PyBUF_WRITABLE : 0);
        bool got = PyObject_GetBuffer(PyTuple_GetItem(args, k), &into[k], flags) == 0;
        bool fits = got && into[k].itemsize == width[k] && (k == 0 || into[k].len / width[k] == length);
        if (fits && k == 0)
            length = into[k].len / width[k];
        if (!fits || length > INT32_MAX - 1) {
            if (got)
                PyErr_SetString(PyExc_ValueError, "the arrays differ in length, or hold other numbers");
            for (int done = 0; done < k + (got ? 1 : 0); done++)
                PyBuffer_Release(&into[done]);
            return -1;
        }
    }
    return 0;
}

static PyObject *done(bool good, int count, Py_buffer *into, const char *what)
{
    for (int k = 0; k < count; k++)
        PyBuffer_Release(&into[k]);
    if (!good) {
        PyErr_SetString(PyExc_ValueError, what);
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(nest_doc, "nest(start, end, parent, own): int64, int64 in sweep order; fills int32 positions and int64 self times.");

static PyObject *nest(PyObject *self, PyObject *args)
{
    Py_buffer into[4];
    bool good;
    (void)self;
    if (take(args, 4, (const int[]){8, 8, 4, 8}, (const bool[]){false, false, true, true}, into))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    good = sweep(into[0].buf, into[1].buf, into[2].buf, into[3].buf, into[0].len / 8);
    Py_END_ALLOW_THREADS
    return done(good, 4, into, "there is not enough memory");
}

PyDoc_STRVAR(nearest_doc, "nearest(parent, wanted, answer): int32, bool; fills int32 positions of the nearest wanted event, itself included.");

static PyObject *nearest(PyObject *self, PyObject *args)
{
    Py_buffer into[3];
    bool good;
    (void)self;
    if (take(args, 3, (const int[]){4, 1, 4}, (const bool[]){false, false, true}, into))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    good = find_nearest(into[0].buf, into[1].buf, into[2].buf, into[0].len / 4);
    Py_END_ALLOW_THREADS
    return done(good, 3, into, "a parent lies outside the events, or encloses itself");
}

PyDoc_STRVAR(pair_doc, "pair(key, name, begins, partner): int32, int32, bool in order of time; fills int32 positions of ends and begins.");

static PyObject *pair(PyObject *self, PyObject *args)
{
    Py_buffer into[4];
    bool good;
    (void)self;
    if (take(args, 4, (const int[]){4, 4, 1, 4}, (const bool[]){false, false, false, true}, into))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    good = find_partners(into[0].buf, into[1].buf, into[2].buf, into[3].buf, into[0].len / 4);
    Py_END_ALLOW_THREADS
    return done(good, 4, into, "a key lies outside the rows, or there is not enough memory");
}

static PyMethodDef METHODS[] = {
    {"pair", pair, METH_VARARGS, pair_doc},
    {"nest", nest, METH_VARARGS, nest_doc},
    {"nearest", nearest, METH_VARARGS, nearest_doc},
    {NULL, NULL, 0, NULL},
};

static int begin(PyObject *module)
{
    return PyModule_AddIntConstant(module, "LAYOUT", LAYOUT);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, begin}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_sweep", "Nesting of events in one pass.", 0, METHODS, SLOTS, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__sweep(void)
{
    return PyModuleDef_Init(&MODULE);
}
