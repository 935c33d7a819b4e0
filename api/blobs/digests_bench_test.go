package blobs

import (
	"net/http"
	"testing"
)

// BenchmarkDigests is the hashing alone of a 4 MiB body, in the parts it is read in.
func BenchmarkDigests(b *testing.B) {
	body := content(1<<20, 1)
	for _, c := range []struct {
		name   string
		header http.Header
		block  bool
	}{
		{"block", http.Header{}, true},
		{"block-md5", http.Header{headerContentMD5: {md5Of(body)}}, true},
		{"blob", http.Header{}, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(4 * int64(len(body)))
			for b.Loop() {
				d := digestsOf(b, !c.block, c.header, testVersion)
				for range 4 {
					d.write(body)
				}
			}
		})
	}
}
