package redisstore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// slot is where a Cluster keeps a key: CRC16 of what stands between the first { and
// the first } behind it, where that is not empty.
func slot(key string) uint16 {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

// FuzzKeysOfARoom holds that whatever a room may be called, all its keys share a
// slot, belong to no other room, and are under the prefix.
func FuzzKeysOfARoom(f *testing.F) {
	require.EqualValues(f, 0x31c3, slot("123456789"), "the check value of the Cluster specification")
	for _, seed := range []string{"sale", "0", "a_b-c", strings.Repeat("a", 64), "}", "", "a}{b", "*", "x:wait", "é", "{sale}", "sale\n"} {
		f.Add(seed, "default")
	}
	f.Add("sale", "sale2")
	f.Fuzz(func(t *testing.T, room, other string) {
		if !named(room) || !named(other) {
			return
		}
		seen := map[string]bool{}
		for _, key := range keys("linekeeper", room) {
			require.Equal(t, slot(room), slot(key), key)
			require.True(t, strings.HasPrefix(key, "linekeeper:{"+room+"}:"), key)
			require.False(t, seen[key], "%s is there twice", key)
			seen[key] = true
		}
		for _, key := range keys("linekeeper", other) {
			require.Equal(t, room == other, seen[key], "%s of %q is a key of %q", key, other, room)
		}
	})
}

// named is room.ValidName, written another way.
func named(room string) bool {
	const first = "abcdefghijklmnopqrstuvwxyz0123456789"
	return room != "" && len(room) <= 64 && strings.ContainsRune(first, rune(room[0])) && strings.Trim(room, first+"_-") == "" &&
		!strings.ContainsFunc(room, func(r rune) bool { return !strings.ContainsRune(first+"_-", r) })
}
