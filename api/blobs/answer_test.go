package blobs

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services"
)

// stuck is the answer of a client that takes no byte until it is released.
type stuck struct {
	*httptest.ResponseRecorder
	began   chan int64 // the Content-Length, zero for none
	release chan struct{}
	once    sync.Once
}

func newStuck(release chan struct{}) *stuck {
	return &stuck{ResponseRecorder: httptest.NewRecorder(), began: make(chan int64, 1), release: release}
}

func (s *stuck) Write(p []byte) (int, error) {
	s.once.Do(func() {
		n, _ := strconv.ParseInt(s.Header().Get("Content-Length"), 10, 64)
		s.began <- n
		<-s.release
	})
	return s.ResponseRecorder.Write(p)
}

// serveDirectly serves a GET of a path of the account without a connection.
func (r *rig) serveDirectly(ctx context.Context, w http.ResponseWriter, path string) error {
	hr := httptest.NewRequestWithContext(ctx, http.MethodGet, "/acct"+path, nil)
	resource, raw, _ := strings.Cut(path, "?")
	query, err := protocol.ParseQuery(raw)
	require.NoError(r.t, err)
	q := &protocol.Request{
		HTTP: hr, Target: protocol.Target{Service: geo.Blob, Resource: resource, Base: "http://x/acct/"}, Query: query, Version: testVersion, Account: &r.account,
	}
	return r.handler.Serve(w, q, Lookup(q))
}

// Clients that take no byte of their answers hold a bounded memory, whatever their number:
// first they make the pages of the others short, which still page to the end, and then
// others of their account wait, until their time is over.
// It holds invariant 8.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	const windows = 16
	r := newRig(t, func(o *Options) { o.AnswersBytesMax = windows * protocol.WindowBytes })
	const blobsMade = 150
	var names []string
	for i := range blobsMade {
		names = append(names, fmt.Sprintf("%04d", i))
		require.Equal(t, http.StatusCreated, r.put("/cont/"+names[i], nil, "x-ms-meta-a", repeat("v", 8000)).status)
	}
	const path = listPath + "&include=metadata"
	release := make(chan struct{})
	var wg sync.WaitGroup
	serve := func(w http.ResponseWriter, path string) {
		wg.Go(func() {
			if err := r.serveDirectly(t.Context(), w, path); err != nil {
				t.Error(err)
			}
		})
	}
	long, short := 0, 0
	for long+short < windows/4 { // An account's share of what answers begin with.
		w := newStuck(release)
		serve(w, path)
		if <-w.began > protocol.WindowBytes {
			long++
		} else {
			short++
		}
		held := int64(long+short) + r.handler.answers.more.Load()/protocol.WindowBytes
		require.LessOrEqual(t, held, int64(windows), "answers hold more than they may")
		if short == 1 {
			// Others are served meanwhile, page by page.
			var got []string
			for marker := ""; ; {
				l := r.list(path + "&marker=" + marker)
				got = append(got, l.names()...)
				if marker = l.NextMarker; marker == "" {
					break
				}
			}
			require.Equal(t, names, got)
		}
	}
	require.Equal(t, 1, long)
	require.Equal(t, windows/4-1, short, "one window each")
	r.requireCode(r.get(path+"&limit=30ms"), http.StatusServiceUnavailable, "ServerBusy")
	r.requireCode(r.get("/?comp=list&limit=30ms"), http.StatusServiceUnavailable, "ServerBusy")
	r.requireCode(r.get("/cont/0000?comp=blocklist&limit=30ms"), http.StatusServiceUnavailable, "ServerBusy")
	others := r.handler.answers.begins.Of("another")
	held, ok := others.TryAdmit(protocol.WindowBytes)
	require.True(t, ok, "clients of one account keep the answers of another from beginning")
	others.Release(held)
	close(release)
	wg.Wait()
	require.Zero(t, r.handler.answers.more.Load())
	require.Greater(t, len(r.list(path).Blobs), 50, "pages stay short")
}

// A download that finds the answers full goes on in small parts, and gives back what it
// took however it ends; a block list counts too.
// It holds invariant 8.
func TestDownloadsAreBounded(t *testing.T) {
	t.Parallel()
	const windows = 8
	r := newRig(t, func(o *Options) { o.AnswersBytesMax = windows * protocol.WindowBytes })
	body := content(1<<20, 1)
	require.Equal(t, http.StatusCreated, r.put("/cont/b", body).status)
	release := make(chan struct{})
	first, second := newStuck(release), newStuck(release)
	var wg sync.WaitGroup
	serve := func(w http.ResponseWriter, path string) {
		wg.Go(func() {
			if err := r.serveDirectly(t.Context(), w, path); err != nil {
				t.Error(err)
			}
		})
	}
	for _, w := range []*stuck{first, second} {
		serve(w, "/cont/b")
		require.EqualValues(t, len(body), <-w.began)
		require.EqualValues(t, readBytes, r.handler.answers.more.Load(), "one buffer for both")
	}
	list := newStuck(release)
	serve(list, "/cont/b?comp=blocklist")
	<-list.began
	free := int64(windows*protocol.WindowBytes - readBytes - windowHeldBytes)
	_, more := r.handler.answers.TryAdmit(free + 1)
	require.False(t, more, "the block list is not counted")
	close(release)
	wg.Wait()
	require.Equal(t, body, first.Body.Bytes())
	require.Equal(t, body, second.Body.Bytes())
	require.Zero(t, r.handler.answers.more.Load())
	all, more := r.handler.answers.TryAdmit(windows * protocol.WindowBytes)
	require.True(t, more, "not all is given back")
	r.handler.answers.Release(all)
}

// List Blobs and List Containers page to the end with little work a page, for any prefix
// and delimiter, upper case and lower; names are compared with case, so that no container
// begins with a capital.
func TestListingsPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	names := []string{"A/1", "A/2", "Ab", "a/1", "a/2", "aB", "ab", "b"} // In order.
	for _, name := range names {
		require.Equal(t, http.StatusCreated, r.put("/cont/"+name, nil).status)
	}
	for _, name := range []string{"aaa", "aab", "b-1"} {
		require.Equal(t, http.StatusCreated, r.do(http.MethodPut, "/"+name+"?restype=container", nil).status)
	}
	all := func(path, prefix string, size int) []string {
		got := []string{}
		for marker, pages := "", 0; ; pages++ {
			require.Less(t, pages, 50, "the pages do not end: %s", path)
			w := httptest.NewRecorder()
			require.NoError(t, r.serveDirectly(t.Context(), w, fmt.Sprintf("%s&prefix=%s&maxresults=%d&marker=%s", path, prefix, size, marker)))
			var l listed
			require.NoError(t, xml.Unmarshal(w.Body.Bytes(), &l))
			require.LessOrEqual(t, len(l.names()), size)
			got = append(got, l.names()...)
			if marker = l.NextMarker; marker == "" {
				return got
			}
		}
	}
	for _, work := range []int{0, 1, 100, 200} {
		r.handler.o.Scans = services.NewScans(clock.System{})
		r.handler.o.Scans.WorkMax = work
		for _, size := range []int{1, 2, 5000} {
			for prefix, want := range map[string][]string{
				"": names, "A": {"A/1", "A/2", "Ab"}, "a": {"a/1", "a/2", "aB", "ab"}, "aB": {"aB"}, "AB": {}, "B": {}, "A/": {"A/1", "A/2"},
			} {
				require.Equal(t, want, all(listPath, prefix, size), "%q, %d, work %d", prefix, size, work)
			}
			for prefix, want := range map[string][]string{
				"": {">A/", "Ab", ">a/", "aB", "ab", "b"}, "A": {">A/", "Ab"}, "a/": {"a/1", "a/2"}, "aB": {"aB"},
			} {
				require.ElementsMatch(t, want, all(listPath+"&delimiter=/", prefix, size), "%q, %d, work %d", prefix, size, work)
			}
			for prefix, want := range map[string][]string{
				"": {"aaa", "aab", "b-1", "cont"}, "a": {"aaa", "aab"}, "aab": {"aab"}, "A": {}, "aA": {}, "B": {}, "CONT": {},
			} {
				require.Equal(t, want, all("/?comp=list", prefix, size), "%q, %d, work %d", prefix, size, work)
			}
		}
	}
}

// A read whose client has left ends before it looks at anything; within a page see
// TestListIsBounded of services/blobs.
func TestReadEndsWithItsClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for i := range 300 {
		require.Equal(t, http.StatusCreated, r.put(fmt.Sprintf("/cont/%04d", i), nil).status)
	}
	for _, path := range []string{listPath, "/?comp=list", "/cont/0000?comp=blocklist", "/cont/0000"} {
		gone, leave := context.WithCancel(t.Context())
		leave()
		w := httptest.NewRecorder()
		require.Error(t, r.serveDirectly(gone, w, path), path)
		require.Zero(t, w.Body.Len())
	}
	require.Zero(t, r.handler.answers.more.Load())
}
