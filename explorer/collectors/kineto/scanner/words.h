/* A growing list of distinct texts, laid out as Arrow lays out a dictionary: each new one gets the next number. */

#ifndef EXPLORER_WORDS_H
#define EXPLORER_WORDS_H

#include <stdlib.h>

#include "json_text.h"

#define MOST_PROBES 512 /* Bounds what texts made to collide can cost. */

typedef struct {
    uint64_t hash;
    int32_t number; /* 0 where the slot is free, else the word's number + 1 */
} Slot;

typedef struct {
    uint8_t *letters; /* of all words, one behind the other; not owned */
    int64_t size, capacity;
    int32_t *offsets; /* where each begins, and the last ends; not owned */
    int32_t count, limit;
    int32_t last; /* the word asked for before, often asked for again */
    Slot *slots;
    uint32_t slot_count;
} Words;

static inline uint64_t mixed(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
    return hash ^ hash >> 32;
}

/* A hash of some bytes; `end` is the end of what may be read. */
static inline uint64_t hash_of(Place at, size_t length, Place end)
{
    uint64_t hash = mixed(0x2545F4914F6CDD1DULL, length), tail = 0;
    for (; length >= 8; length -= 8, at += 8)
        hash = mixed(hash, eight_bytes(at));
    if (LOW_BYTES_FIRST && length && end - at >= 8)
        tail = eight_bytes(at) & EVERY_BYTE(0xFF) >> (64 - 8 * length);
    else
        for (size_t i = 0; i < length; i++)
            tail |= (uint64_t)at[i] << (8 * i);
    return mixed(hash, tail);
}

static bool more_slots(Words *words)
{
    uint32_t count = words->slot_count ? 2 * words->slot_count : 1024;
    Slot *slots = calloc(count, sizeof(Slot));
    if (!slots)
        return false;
    for (uint32_t i = 0; i < words->slot_count; i++) {
        if (!words->slots[i].number)
            continue;
        uint32_t place = (uint32_t)words->slots[i].hash & (count - 1);
        while (slots[place].number)
            place = (place + 1) & (count - 1);
        slots[place] = words->slots[i];
    }
    free(words->slots);
    words->slots = slots;
    words->slot_count = count;
    return true;
}

static inline bool is_word(const Words *words, int32_t number, Place at, size_t length)
{
    int32_t start = words->offsets[number];
    return (size_t)(words->offsets[number + 1] - start) == length && !memcmp(words->letters + start, at, length);
}

/* The number of a word, which is added if it is new; -1 where there is no room for it. `end` is that of the readable text. */
static int32_t number_of(Words *words, Place at, size_t length, Place end)
{
    if (words->count && is_word(words, words->last, at, length))
        return words->last;
    if ((uint32_t)words->count * 2 >= words->slot_count && !more_slots(words))
        return -1;
    uint64_t hash = hash_of(at, length, end);
    uint32_t mask = words->slot_count - 1, place = (uint32_t)hash & mask;
    for (int probes = 0; words->slots[place].number; place = (place + 1) & mask) {
        const Slot *slot = &words->slots[place];
        if (slot->hash == hash && is_word(words, slot->number - 1, at, length))
            return words->last = slot->number - 1;
        if (++probes == MOST_PROBES)
            return -1;
    }
    if (words->count == words->limit || (int64_t)length > words->capacity - words->size)
        return -1;
    memcpy(words->letters + words->size, at, length);
    words->size += (int64_t)length;
    words->slots[place] = (Slot){hash, ++words->count};
    words->offsets[words->count] = (int32_t)words->size;
    return words->last = words->count - 1;
}

#endif
