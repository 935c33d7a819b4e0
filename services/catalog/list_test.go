package catalog

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// scanned is a catalog that can be read and scanned.
type scanned map[string][]byte

func (r scanned) Get(key []byte) ([]byte, bool, error) {
	v, ok := r[string(key)]
	return v, ok, nil
}

func (r scanned) Scan(lower, upper []byte) (kv.Iterator, error) {
	keys := slices.Sorted(maps.Keys(r))
	return &rowIterator{r, slices.DeleteFunc(keys, func(k string) bool { return k < string(lower) || k >= string(upper) }), -1}, nil
}

type rowIterator struct {
	scanned
	keys []string
	at   int
}

func (i *rowIterator) Next() bool    { i.at++; return i.at < len(i.keys) }
func (i *rowIterator) Key() []byte   { return []byte(i.keys[i.at]) }
func (i *rowIterator) Value() []byte { return bytes.Clone(i.scanned[i.keys[i.at]]) }
func (i *rowIterator) Close() error  { return nil }

func (i *rowIterator) SeekGE(key []byte) bool {
	i.at, _ = slices.BinarySearch(i.keys, string(key))
	return i.at < len(i.keys)
}

func (r scanned) commit(t require.TestingT, w services.Write, at geo.Timestamp) {
	if f, begins := w.(services.Founder); begins {
		f.InEpoch(1)
	}
	e, err := w.Evaluate(r, at)
	require.NoError(t, err)
	for _, op := range e.Ops {
		r[string(w.Partition().Append(nil))+string(op.Row)] = op.Value
	}
}

// walk follows the pages of a listing to their end and returns the names shown. No page
// has more than size names, and each goes on above the last.
func (r scanned) walk(t require.TestingT, l Listing, size, work int) []string {
	got := []string{}
	for {
		count := 0
		budget := services.NewWorkBudget(context.Background(), clock.System{}, work)
		next, err := Page(context.Background(), r, l, budget, func(c *Container) (bool, error) {
			if count == size {
				return false, nil
			}
			got = append(got, c.Name)
			count++
			return true, nil
		})
		require.NoError(t, err)
		if next == "" {
			return got
		}
		require.Greater(t, next, keyName(l.Service, l.From))
		l.From = next
	}
}

// Over any pages a listing shows the living containers of one service in order, those
// within its prefix and bounds alone, each once: whatever the case of the names, of the
// prefix, of the bounds and of the continuation, and however little work a page may do.
// Tables are matched without case, containers with; those whose names begin with a dollar sign are ahead of all others, and
// the properties of the service, ahead of them, are not listed.
func TestPage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		service := rapid.SampledFrom([]geo.Service{geo.Table, geo.Blob}).Draw(t, "service")
		fold := func(s string) string { return s }
		names := rapid.StringMatching(`\$?[a-c]{1,4}`)
		if service == geo.Table {
			fold, names = strings.ToLower, rapid.StringMatching(`[a-cA-C]{1,4}`)
		}
		bound := rapid.StringMatching(`\$?[a-cA-C]{0,3}`)
		r, stored, at := scanned{}, map[string]string{}, geo.Timestamp(2)
		r.commit(t, &SetProperties{Service: service, Account: "acct", Change: func(*Properties) {}}, at)
		for range rapid.IntRange(0, 20).Draw(t, "containers") {
			name := names.Draw(t, "name")
			if _, twice := stored[fold(name)]; twice {
				continue
			}
			at += 2
			r.commit(t, &Create{Service: service, Account: "acct", Name: name}, at)
			r.commit(t, &Create{Service: geo.Queue, Account: "acct", Name: name + "q"}, at)
			stored[fold(name)] = name
			if rapid.Bool().Draw(t, "deleted") {
				r.commit(t, &Delete{Service: service, Account: "acct", Name: name}, at+1)
				stored[fold(name)] = ""
			}
		}
		l := Listing{
			Service: service, Account: "acct", Prefix: bound.Draw(t, "prefix"), Low: bound.Draw(t, "low"),
			High: bound.Draw(t, "high"), Bounded: rapid.Bool().Draw(t, "bounded"), From: bound.Draw(t, "from"),
		}
		want := []string{}
		for _, key := range slices.Sorted(maps.Keys(stored)) {
			inside := strings.HasPrefix(key, fold(l.Prefix)) && key >= fold(l.Low) && key >= fold(l.From) && (!l.Bounded || key < fold(l.High))
			if inside && stored[key] != "" {
				want = append(want, stored[key])
			}
		}
		work := rapid.SampledFrom([]int{1, rowWork, 3 * rowWork, 1 << 20}).Draw(t, "work")
		require.Equal(t, want, r.walk(t, l, rapid.IntRange(1, 8).Draw(t, "size"), work))
	})
}

// A page of a walk that finds nothing ends when its budget is spent, with a continuation;
// once the client is gone it ends with an error.
func TestPageIsBounded(t *testing.T) {
	r := scanned{}
	for i := range 1000 {
		r.commit(t, &Create{Service: geo.Table, Account: "acct", Name: fmt.Sprintf("T%04d", i)}, geo.Timestamp(2*i+2))
	}
	offered := 0
	skip := func(*Container) (bool, error) { offered++; return true, nil }
	l := Listing{Service: geo.Table, Account: "acct"}
	next, err := Page(t.Context(), r, l, services.NewWorkBudget(t.Context(), clock.System{}, 100*rowWork), skip)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("t%04d", offered), next)
	require.Less(t, offered, 100)

	ctx, leave := context.WithCancel(t.Context())
	leave()
	_, err = Page(ctx, r, l, services.NewBudget(ctx, clock.System{}), skip)
	require.ErrorIs(t, err, context.Canceled)
}

// limited fails the test when a scan reads more rows than its limit.
type limited struct {
	scanned
	t     *testing.T
	limit int
}

func (l *limited) Scan(lower, upper []byte) (kv.Iterator, error) {
	it, err := l.scanned.Scan(lower, upper)
	return &limitedIterator{it, l}, err
}

type limitedIterator struct {
	kv.Iterator
	l *limited
}

func (i *limitedIterator) Key() []byte {
	i.l.limit--
	require.GreaterOrEqual(i.l.t, i.l.limit, 0, "more rows are read than there are accounts")
	return i.Iterator.Key()
}

// Accounts are listed by name without reading their containers, of which an account may
// have any number, and not further than the client waits.
func TestAccounts(t *testing.T) {
	r := scanned{}
	var want []geo.Account
	for _, name := range []geo.Account{"aaa", "bbb", "bbbb", "zzz"} {
		v, err := (&Account{Name: name}).Encode()
		require.NoError(t, err)
		r[string(AccountPartition(name).Append(nil))] = v
		want = append(want, name)
		for _, s := range []geo.Service{geo.Blob, geo.Table, geo.Queue} {
			for i := range 50 {
				r.commit(t, &Create{Service: s, Account: name, Name: fmt.Sprintf("c%02d", i)}, 2)
			}
		}
	}
	r.commit(t, &Create{Service: geo.Table, Account: "orphan", Name: "table"}, 2)
	op, err := SeenOp(geo.Epoch{Number: 1, Location: "north"})
	require.NoError(t, err)
	for _, name := range []geo.Account{"aaa", "orphan"} { // Of the second the account is gone (R8).
		r[string(AccountPartition(name).Append(nil))+string(op.Row)] = op.Value
	}
	// Rows of which the account's name is followed by a container's are passed in one step too.
	r[string(keys.AppendContainer(nil, geo.Catalog, "other", "c", keys.Generation{}))+string(keys.AppendString(nil, "o"))] = []byte("value")
	var got []geo.Account
	require.NoError(t, EachAccount(t.Context(), &limited{r, t, len(want) + 2}, func(name geo.Account, stored []byte) error {
		a, err := ParseAccount(stored)
		require.NoError(t, err)
		require.Equal(t, name, a.Name)
		got = append(got, name)
		return nil
	}))
	require.Equal(t, want, got)
	gone, leave := context.WithCancel(t.Context())
	leave()
	require.ErrorIs(t, EachAccount(gone, r, func(geo.Account, []byte) error { return nil }), context.Canceled)
}

// New metadata replaces the old, moves Last-Modified, and leaves the generation.
func TestSetMetadata(t *testing.T) {
	r := scanned{}
	create := &Create{Service: geo.Blob, Account: "acct", Name: "c", Metadata: []Pair{{"old", "1"}}}
	_, err := create.Evaluate(r, 5)
	require.Error(t, err, "R8: nobody gave it the epoch of its generation")
	r.commit(t, create, 10)
	w := &SetMetadata{Service: geo.Blob, Account: "acct", Name: "c", Metadata: []Pair{{"new", "2"}}}
	r.commit(t, w, 20)
	c, err := GetContainer(r, geo.Blob, "acct", "c")
	require.NoError(t, err)
	require.Equal(t, &Container{Version: 1, Name: "c", Epoch: 1, Created: 10, Modified: 20, Metadata: []Pair{{"new", "2"}}}, c)
	require.Equal(t, geo.Timestamp(20), w.Modified)
	r.commit(t, &Delete{Service: geo.Blob, Account: "acct", Name: "c"}, 30)
	_, err = w.Evaluate(r, 40)
	require.Error(t, err)
}
