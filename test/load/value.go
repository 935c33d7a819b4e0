package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"antipode/test/oracle"
	"antipode/test/rest"
)

// The sizes of written values in bytes, chosen on both sides of the limit under
// which a payload travels in the log (16 to 32 KiB, DESIGN section 2).
const (
	entityFillBytes = 300
	blobTinyBytes   = 1 << 10
	blobSmallBytes  = 40 << 10
	blobBigBytes    = 4 << 20
)

// Keys say what they are by their first letter: "e/pk/rk" is an entity, "s/name"
// a small blob and "b/name" one of 4 MiB.
const (
	kindEntity = 'e'
	kindSmall  = 's'
	kindBig    = 'b'
)

// errTorn says that a value is not one that any single write wrote.
var errTorn = errors.New("value is not whole")

// fill returns text that depends on the key, the version and which of the two
// parts of an entity it is for.
func fill(key, part string, v oracle.Version) string {
	word := fmt.Sprintf("%s %s %d ", key, part, v)
	return strings.Repeat(word, entityFillBytes/len(word)+1)
}

// entityValue returns the properties that a write of version v sends: a merge
// sends its own half only.
func entityValue(key string, v oracle.Version, merge bool) rest.Entity {
	pk, rk := entityKeys(key)
	e := rest.Entity{"PartitionKey": pk, "RowKey": rk, "Last": v, "LastFill": fill(key, "last", v)}
	if !merge {
		e["Base"], e["BaseFill"] = v, fill(key, "base", v)
	}
	return e
}

func entityKeys(key string) (pk, rk string) {
	pk, rk, _ = strings.Cut(key[2:], "/")
	return pk, rk
}

// entityState reads back what entityValue wrote; every property must belong to
// the versions the entity names.
func entityState(key string, e rest.Entity) (oracle.State, error) {
	last, ok1 := e["Last"].(float64)
	base, ok2 := e["Base"].(float64)
	s := oracle.State{Present: true, Last: oracle.Version(last), Base: oracle.Version(base)}
	if !ok1 || !ok2 || e["LastFill"] != fill(key, "last", s.Last) || e["BaseFill"] != fill(key, "base", s.Base) {
		return s, fmt.Errorf("%w: entity %s claims %v: %.120v", errTorn, key, s, e)
	}
	return s, nil
}

// blobValue returns the content of version v of a blob: a head naming key and
// version, then bytes that depend on both.
func blobValue(key string, v oracle.Version) []byte {
	b := make([]byte, blobSize(key, v))
	n := copy(b, blobHead(key, v))
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], xxhash.Sum64String(key))
	binary.LittleEndian.PutUint64(seed[8:], uint64(v))
	source := rand.NewChaCha8(seed)
	_, _ = source.Read(b[n:])
	return b
}

func blobHead(key string, v oracle.Version) string { return key + "\n" + strconv.Itoa(int(v)) + "\n" }

func blobSize(key string, v oracle.Version) int {
	switch {
	case key[0] == kindBig:
		return blobBigBytes
	case v%2 == 0:
		return blobTinyBytes
	}
	return blobSmallBytes
}

// blobState reads back what blobValue wrote and compares every byte.
func blobState(key string, body []byte) (oracle.State, error) {
	parts := bytes.SplitN(body[:min(len(body), 256)], []byte("\n"), 3)
	if len(parts) != 3 || string(parts[0]) != key {
		return oracle.State{}, fmt.Errorf("%w: blob %s of %d bytes begins %.60q", errTorn, key, len(body), body)
	}
	n, err := strconv.ParseUint(string(parts[1]), 10, 32)
	if err != nil {
		return oracle.State{}, fmt.Errorf("%w: blob %s: %w", errTorn, key, err)
	}
	v := oracle.Version(n)
	if !bytes.Equal(body, blobValue(key, v)) {
		return oracle.State{}, fmt.Errorf("%w: blob %s of %d bytes claims version %d", errTorn, key, len(body), v)
	}
	return oracle.State{Present: true, Last: v, Base: v}, nil
}
