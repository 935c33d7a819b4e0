package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"hash"
)

// scratch is the memory of one verification.
type scratch struct {
	canonicalizer

	text      []byte
	signature []byte
	// macs holds the HMAC states of the two keys used last with this memory.
	// Resetting one costs a third of making another, and allocates nothing.
	macs [2]macState
	// want is a computed MAC; here because a hash.Hash makes its result escape.
	want [sha256.Size]byte
	// hashes counts the MACs computed for this request.
	hashes int
}

// macState is HMAC-SHA256 under one key.
type macState struct {
	// key is our own copy: the caller's may change under an equal slice header.
	key  []byte
	hash hash.Hash
}

// sum sets mac to HMAC-SHA256(key, text).
func (s *macState) sum(mac *[sha256.Size]byte, key, text []byte) {
	if s.hash == nil || !bytes.Equal(s.key, key) {
		s.key, s.hash = bytes.Clone(key), hmac.New(sha256.New, key)
	} else {
		s.hash.Reset()
	}
	s.hash.Write(text)
	s.hash.Sum(mac[:0])
}

// scratchBytesMax is the largest text kept for another verification.
const scratchBytesMax = 16 << 10

// keep puts memory back for another verification, unless a huge request made it
// huge.
func (v *Verifier) keep(s *scratch) {
	s.release()
	if cap(s.text) <= scratchBytesMax {
		v.spare.Put(s)
	}
}

// signed reports whether mac is the MAC of s.text under one of the keys.
func (s *scratch) signed(mac *[sha256.Size]byte, keys Keys) bool {
	for i, key := range [...][]byte{keys.Key1, keys.Key2} {
		if len(key) == 0 || i > 0 && bytes.Equal(key, keys.Key1) {
			continue
		}
		s.hashes++
		s.macs[i].sum(&s.want, key, s.text)
		if subtle.ConstantTimeCompare(s.want[:], mac[:]) == 1 {
			return true
		}
	}
	return false
}

// decodeSignature reads the Base64 text of a signature. The text must be the one
// encoding of its bytes, so that no two texts stand for one signature.
func decodeSignature(mac *[sha256.Size]byte, text []byte) bool {
	const encodedLen = 44
	if len(text) != encodedLen {
		return false
	}
	var buf [33]byte
	n, err := base64.StdEncoding.Decode(buf[:], text)
	if err != nil || n != len(mac) {
		return false
	}
	copy(mac[:], buf[:])
	var canonical [encodedLen]byte
	base64.StdEncoding.Encode(canonical[:], mac[:])
	return string(canonical[:]) == string(text)
}
