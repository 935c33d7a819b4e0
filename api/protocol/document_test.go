package protocol

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
)

// fill appends n bytes to a document, and reports whether it had room for them.
func fill(d *Document, n int) bool {
	if !d.Grow(n) {
		return false
	}
	d.Append(func(b []byte) []byte { return append(b, bytes.Repeat([]byte{'x'}, n)...) })
	return true
}

// A document is what was appended, over any windows; what it holds is given back as it is
// written, or when it is closed, once.
func TestDocument(t *testing.T) {
	var windows Windows
	a := NewInFlight(10 * WindowBytes)
	whole := func() {
		t.Helper()
		d, err := windows.Document(t.Context(), a, 10*WindowBytes, 0)
		require.NoError(t, err, "nothing is held")
		d.Close()
	}
	for _, sizes := range [][]int{{}, {1, 2, 3}, {WindowBytes, 1}, {WindowBytes - 1, 2, 3 * WindowBytes, 5}, {4 * WindowBytes}} {
		d, err := windows.Document(t.Context(), a, WindowBytes, 100)
		require.NoError(t, err)
		total := 0
		for _, n := range sizes {
			require.True(t, fill(d, n))
			total += n
		}
		require.Equal(t, total, d.Len())
		w := httptest.NewRecorder()
		d.WriteTo(w)
		require.Equal(t, total, w.Body.Len())
		d.Close()
		d.Close()
		whole()
	}
	d, err := windows.Document(t.Context(), a, WindowBytes, 0)
	require.NoError(t, err)
	require.True(t, fill(d, 3*WindowBytes))
	d.WriteTo(broken{httptest.NewRecorder()})
	d.Close()
	whole()
}

// broken is a client that has gone.
type broken struct{ *httptest.ResponseRecorder }

// Write implements io.Writer.
func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

// All documents together hold no more than the bound: one that finds no room does not
// grow, a new one waits until its request ends, and what is larger than the bound takes all
// of it.
func TestAnswersBound(t *testing.T) {
	var windows Windows
	a := NewInFlight(4 * WindowBytes)
	one, err := windows.Document(t.Context(), a, WindowBytes, WindowBytes)
	require.NoError(t, err)
	two, err := windows.Document(t.Context(), a, WindowBytes, 0)
	require.NoError(t, err)
	require.True(t, fill(one, WindowBytes))
	require.True(t, fill(two, WindowBytes))
	require.False(t, fill(two, WindowBytes+1), "there is room for one window")
	require.True(t, fill(two, 1))
	require.False(t, fill(one, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = windows.Document(ctx, a, 1, 0)
	require.ErrorIs(t, err, storageerr.ServerBusy)

	waits := make(chan *Document)
	go func() {
		d, _ := windows.Document(context.Background(), a, 100*WindowBytes, WindowBytes)
		waits <- d
	}()
	one.Close()
	two.Close()
	large := <-waits
	require.NotNil(t, large)
	_, err = windows.Document(ctx, a, 1, 0)
	require.ErrorIs(t, err, storageerr.ServerBusy)
	large.Close()
}
