package extent_test

import (
	"context"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/stamp/extent"
)

// A chunk may be named by a change once a Sync after its Put has returned.
func Example() {
	s, err := extent.Open(vfs.NewMem(), "extents", extent.Options{})
	if err != nil {
		panic(err)
	}
	data := []byte("a payload above the inline limit")
	ref := extent.NewRef(extent.ChunkID{1}, data)
	if err := s.Put(ref, data); err != nil {
		panic(err)
	}
	fmt.Println("durable:", s.Durable(ref.ID))
	if err := s.Sync(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println("durable:", s.Durable(ref.ID))
	part, err := io.ReadAll(s.NewReader(ref, 2, 7))
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", part)
	if err := s.Close(); err != nil {
		panic(err)
	}
	// Output:
	// durable: false
	// durable: true
	// payload
}
