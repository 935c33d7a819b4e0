package batch

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Invariant 8: as many steps as the bound go on side by side; the others begin once these have ended.
func TestStepsSideBySideAreBounded(t *testing.T) {
	t.Parallel()
	running, most, ended := 0, 0, 0
	Run(t.Context(), 2*togetherMax+1, func(ctx context.Context, _ int) {
		running++
		most = max(most, running)
		require.NoError(t, Do(ctx, func() error { return nil }))
		running--
		ended++
	})
	require.Equal(t, togetherMax, most)
	require.Equal(t, 2*togetherMax+1, ended)
}

// counted answers calls that travel in one, and keeps how many did, and their bytes.
type counted struct{ calls, bytes []int }

func (c *counted) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	if method != Method {
		c.calls, c.bytes = append(c.calls, 1), append(c.bytes, len(body))
		return body, nil
	}
	var in []callBody
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	c.calls, c.bytes = append(c.calls, len(in)), append(c.bytes, len(body))
	return Answer(ctx, body, map[string]func(context.Context, []byte) ([]byte, error){
		"echo": func(_ context.Context, body []byte) ([]byte, error) { return body, nil },
	})
}

// Invariant 8: the bytes of the calls that travel in one are bounded, but for the last call. Each gets its own answer.
func TestBytesOfCallsInOneAreBounded(t *testing.T) {
	t.Parallel()
	const calls, length = 10, callsBytesMax/3 + 1
	under := &counted{}
	caller := &SharedCaller{under}
	Run(t.Context(), calls, func(ctx context.Context, i int) {
		body := []byte(`"` + strings.Repeat(string(rune('a'+i)), length-2) + `"`)
		got, err := caller.Call(ctx, "echo", body)
		require.NoError(t, err)
		require.Equal(t, string(body), string(got))
	})
	require.Equal(t, []int{3, 3, 3, 1}, under.calls)
	for _, n := range under.bytes {
		require.Less(t, n, callsBytesMax+length)
	}
}
