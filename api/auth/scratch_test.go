package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"testing"

	"antipode/api/protocol"
)

// The MAC is HMAC-SHA256 whatever the length of the key, also when the memory of
// the key last used comes back with other content.
func TestMAC(t *testing.T) {
	var state macState
	key := make([]byte, 200)
	for _, n := range []int{1, 63, 64, 65, 200, 64, 64} {
		for i := range key {
			key[i] += byte(i * 7)
		}
		for range 2 {
			h := hmac.New(sha256.New, key[:n])
			h.Write([]byte("text"))
			var sum [sha256.Size]byte
			state.sum(&sum, key[:n], []byte("text"))
			if !hmac.Equal(sum[:], h.Sum(nil)) {
				t.Errorf("key of %d bytes: wrong MAC", n)
			}
		}
	}
}

// One verifier serves many requests at once: scratch memory is never shared.
func TestVerifyConcurrently(t *testing.T) {
	v, keys := testVerifier(), Keys{Key1: []byte("another key"), Key2: testKey(t)}
	errs := make(chan error, 8)
	for i := range cap(errs) {
		go func() {
			var first error
			for n := range 50 {
				vec := vectors[(i+n)%len(vectors)]
				if err := verify(v, vec.request(t), vec.service, keys); err != nil && first == nil {
					first = err
				}
			}
			errs <- first
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	keys := Keys{Key1: testKey(b)}
	for _, name := range []string{"1", "4a", "9a"} {
		b.Run(name, func(b *testing.B) {
			i := slices.IndexFunc(vectors, func(v vector) bool { return v.name == name })
			r, v := vectors[i].request(b), testVerifier()
			target, _ := protocol.ParseTarget(vectors[i].service, "http", r.Host, r.RequestURI, hostZones...)
			q, _ := protocol.ParseQuery(target.RawQuery)
			version, _ := protocol.ServiceVersion(target.Service, r.Header.Get("x-ms-version"), false)
			b.ReportAllocs()
			for b.Loop() {
				if err := v.Verify(r, target, &q, version, keys); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
