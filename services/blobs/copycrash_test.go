package blobs

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services/storageerr"
)

// stagedCopy copies a list in steps. The last change was committed at at.
type stagedCopy struct {
	r  *scanned
	at geo.Timestamp
}

// run copies blob "s" onto "a". It ends as by a crash behind so many steps, and otherwise with the commit. It returns
// how many steps were committed, and whether the last change has left rows to be dropped.
func (s *stagedCopy) run(t *testing.T, id byte, crash int) (steps int, left bool) {
	t.Helper()
	b, w := blobAt(t, s.r, "s"), &CopyBlob{Command: Command{Name: testName("a")}}
	w.Begin([16]byte{id})
	for off := uint64(0); off < b.Length; {
		blocks, next, err := BlocksAt(s.r, testName("s"), &b, off, w.Has)
		require.NoError(t, err)
		off = next
		if !w.Add(blocks) {
			continue
		}
		for step := w.Stage(); step != nil; step = w.Stage() {
			if steps == crash {
				return steps, left
			}
			s.at++
			require.NoError(t, s.r.commit(t, step, s.at))
			w.Staged(step)
			left = left || step.Left
			steps++
		}
	}
	if steps == crash {
		return steps, left
	}
	s.at++
	require.NoError(t, s.r.commit(t, w, s.at))
	return steps, left || w.Left
}

// A crash between any two steps of a copy leaves the blob as it was, or none, and shows nothing of the copy. A copy
// of that name succeeds then, and drops the rows that were staged before the crash.
//
// Capability: Blobs: Under faults of processes.
func TestCopyAfterCrash(t *testing.T) {
	source := &scanned{state: state{}}
	list := named(Latest)
	list.Command = Command{Name: testName("s")}
	const blocks = 100
	for i := range blocks {
		w := stage(fmt.Sprintf("%06d", i), fmt.Sprintf("%015360d", i))
		w.Command = list.Command
		require.NoError(t, source.commit(t, w, geo.Timestamp(1+i)))
		list.Blocks = append(list.Blocks, Named{Latest, w.ID})
	}
	require.NoError(t, source.commit(t, list, 200))
	for _, old := range []bool{true, false} {
		begin := func() *stagedCopy {
			s := &stagedCopy{r: &scanned{state: maps.Clone(source.state)}, at: 300}
			if old {
				require.NoError(t, s.r.commit(t, put("a", "old"), s.at))
			}
			return s
		}
		unbroken := begin()
		steps, _ := unbroken.run(t, 1, blocks)
		require.Greater(t, steps, 1)
		whole := text(t, unbroken.r)
		sweep(t, unbroken.r, 400, blocks*deadWork)
		for crash := 1; crash <= steps; crash++ {
			t.Run(fmt.Sprintf("over a blob %t, behind step %d", old, crash), func(t *testing.T) {
				s := begin()
				rows := len(s.r.state)
				s.run(t, 1, crash)
				require.Greater(t, len(s.r.state), rows+crash, "rows were staged")
				sweep(t, s.r, 400, blocks*deadWork)
				shown := []string{"s"}
				if old {
					require.Equal(t, "old", text(t, s.r))
					shown = []string{"a", "s"}
				} else {
					_, err := GetBlob(s.r, testName("a"))
					require.ErrorIs(t, err, storageerr.BlobNotFound)
				}
				l := listing()
				l.Uncommitted = true
				require.Equal(t, shown, listAll(t, s.r, l, 10))

				s.at = 500
				_, left := s.run(t, 2, blocks)
				require.True(t, left)
				sweep(t, s.r, 600, blocks*deadWork)
				require.True(t, whole == text(t, s.r), "the copy differs from its source")
				want, got := len(unbroken.r.state), len(s.r.state)
				require.Equal(t, want, got, "rows that were staged before the crash stay")
			})
		}
	}
}
