package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/stamp/kv"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
)

func (s *stamp) call(ctx context.Context, from, to geo.NodeID, method string, body []byte) ([]byte, error) {
	return s.At(from).Call(ctx, from, to, method, body)
}

// A call brings the request to the one node it is for and its answer back, of any length
// up to the bound; many at once are not mixed up.
func testCalls(t *testing.T, s *stamp) {
	for id := geo.NodeID(1); id <= 3; id++ {
		s.At(id).Handle(id, "echo", func(_ context.Context, body []byte) ([]byte, error) {
			return append([]byte{byte(id)}, body...), nil
		})
	}
	ctx := t.Context()
	for _, length := range []int{0, 1, 4096, 1 << 20, node.CallBytesMax - 1} {
		_, data := chunk(uint64(length), length)
		got, err := s.call(ctx, 1, 2, "echo", data)
		require.NoError(t, err)
		require.True(t, bytes.Equal(append([]byte{2}, data...), got), "%d bytes", length)
	}
	_, err := s.call(ctx, 1, 2, "echo", make([]byte, node.CallBytesMax))
	require.ErrorContains(t, err, "at most", "an answer above the bound")
	_, err = s.call(ctx, 1, 2, "echo", make([]byte, node.CallBytesMax+1))
	require.ErrorContains(t, err, "at most", "a request above the bound")

	var g errgroup.Group
	for i := range 60 {
		from, to := geo.NodeID(i%3+1), geo.NodeID((i+1+i/3%2)%3+1)
		if from == to {
			continue
		}
		g.Go(func() error {
			for k := range 20 {
				body := fmt.Sprint(from, to, i, k)
				got, err := s.call(ctx, from, to, "echo", []byte(body))
				if err != nil || string(got) != string(rune(to))+body {
					return fmt.Errorf("call %s: got %q: %w", body, got, err)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
}

// An error of a range keeps its identity on the way to the caller; any other error arrives as its
// words. A method that nobody answers did nothing.
func testCallErrors(t *testing.T, s *stamp) {
	ctx := t.Context()
	for _, want := range []error{kv.ErrBusy, kv.ErrUnknown, ranges.ErrNotLeader, node.ErrUnreachable} {
		s.At(2).Handle(2, "fail", func(context.Context, []byte) ([]byte, error) { return nil, fmt.Errorf("wrapped: %w", want) })
		_, err := s.call(ctx, 1, 2, "fail", nil)
		require.ErrorIs(t, err, want)
		for _, other := range []error{kv.ErrBusy, kv.ErrUnknown, ranges.ErrNotLeader, node.ErrUnreachable} {
			require.Equal(t, other == want, errors.Is(err, other), "%v is %v", err, other) //nolint:errorlint // The same value.
		}
	}
	s.At(2).Handle(2, "fail", func(context.Context, []byte) ([]byte, error) { return nil, errors.New("of the handler") })
	_, err := s.call(ctx, 1, 2, "fail", nil)
	require.ErrorContains(t, err, "of the handler")
	require.NotErrorIs(t, err, kv.ErrUnknown, "an answer came")

	_, err = s.call(ctx, 1, 2, "nobody", []byte("x"))
	require.ErrorIs(t, err, node.ErrUnreachable)
	s.At(2).Handle(2, "fail", nil)
	_, err = s.call(ctx, 1, 2, "fail", []byte("x"))
	require.ErrorIs(t, err, node.ErrUnreachable)
}

// A node that is away cannot have got a call, and so it says. One whose caller gave up, or
// whose process ended, may have; its handler's context ends.
func testCallAway(t *testing.T, s *stamp) {
	entered, left := make(chan struct{}, 1), make(chan struct{}, 1)
	var ran atomic.Int64
	s.At(2).Handle(2, "hang", func(ctx context.Context, _ []byte) ([]byte, error) {
		ran.Add(1)
		entered <- struct{}{}
		<-ctx.Done()
		left <- struct{}{}
		return nil, kv.ErrUnknown
	})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := s.call(ctx, 1, 2, "hang", []byte("x"))
		result <- err
	}()
	<-entered
	cancel()
	err := <-result
	require.ErrorIs(t, err, kv.ErrUnknown)
	require.NotErrorIs(t, err, node.ErrUnreachable)
	<-left

	s.Stop(2)
	require.Eventually(t, func() bool { return s.At(1).Peer(1, 2) == nil }, wait, poll)
	begin := time.Now()
	_, err = s.call(t.Context(), 1, 2, "hang", []byte("x"))
	require.ErrorIs(t, err, node.ErrUnreachable)
	require.NotErrorIs(t, err, kv.ErrUnknown)
	require.Less(t, time.Since(begin), wait, "it waits for nobody")
	require.EqualValues(t, 1, ran.Load())

	s.Start(2, s.members[2])
	s.At(2).Handle(2, "hang", func(context.Context, []byte) ([]byte, error) { return []byte("back"), nil })
	s.waitPeer(1, 2)
	got, err := s.call(t.Context(), 1, 2, "hang", nil)
	require.NoError(t, err)
	require.Equal(t, "back", string(got))
}
