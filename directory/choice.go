package directory

import (
	"bytes"
	"crypto/rand"
	"fmt"

	"antipode/services/catalog"
	"antipode/services/storageerr"
)

const (
	// keyLen is the length of an account key in bytes (protocol/auth.md 4).
	keyLen = 64
	// keyLenMin is how long a key that a person chooses is at least, in bytes: nobody guesses 128 bits. Accounts that have
	// shorter ones, of earlier versions, keep them.
	keyLenMin = 16
)

// given is what the caller of a creation chose.
type given struct {
	keyPair
	// redundancy is empty for any.
	redundancy catalog.Redundancy
}

// check returns an error that names what an account has not of what was given.
func (g given) check(a *catalog.Account) error {
	if g.redundancy != "" && g.redundancy != a.Redundancy {
		return storageerr.AccountAlreadyExists.Saying(fmt.Sprintf(
			"account %s exists and is %s, not %s; antipodectl account update changes it", a.Name, a.Redundancy, g.redundancy))
	}
	return g.keyPair.check(a)
}

// keyPair are the keys that a caller chose. An empty key means any.
type keyPair [2][]byte

// drawn returns the pair with random keys in place of empty ones.
func (k keyPair) drawn() (keyPair, error) {
	for i := range k {
		if len(k[i]) == 0 {
			k[i] = make([]byte, keyLen)
			if _, err := rand.Read(k[i]); err != nil {
				return k, err
			}
		}
	}
	return k, nil
}

// over returns the pair with the keys of an account in place of empty ones.
func (k keyPair) over(a *catalog.Account) (key1, key2 []byte) {
	for i, stored := range [][]byte{a.Key1, a.Key2} {
		if len(k[i]) == 0 {
			k[i] = stored
		}
	}
	return k[0], k[1]
}

// missing names the keys of the pair that an account does not accept; "" if it accepts both.
func (k keyPair) missing(a *catalog.Account) string {
	taken := func(key []byte) bool {
		return len(key) == 0 || bytes.Equal(key, a.Key1) || bytes.Equal(key, a.Key2)
	}
	switch first, second := taken(k[0]), taken(k[1]) || bytes.Equal(k[0], k[1]); {
	case first && second:
		return ""
	case first:
		return "key2"
	case second:
		return "key1"
	}
	return "key1 and key2"
}

// check returns an error that names the keys of the pair that an account does not accept.
func (k keyPair) check(a *catalog.Account) error {
	missing := k.missing(a)
	if missing == "" {
		return nil
	}
	return storageerr.AccountAlreadyExists.Saying(fmt.Sprintf(
		"account %s exists and does not take the given %s; antipodectl account keys %s shows those that it takes", a.Name, missing, a.Name))
}
