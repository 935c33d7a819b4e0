package seglog

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"

	"antipode/geo"
	"antipode/stamp/rawfile"
	"antipode/stamp/seglog/logtest"
	"antipode/stamp/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testDir = "log"

// testSegment is a size at which the tests change segments often.
const testSegment = 64 << 10

// open opens a log with small segments and incarnations from seed.
func open(fs vfs.FS, seed uint64) (*Log, error) {
	return Open(testDir, state.Options{FS: fs, LogSegmentBytes: testSegment, Rand: byteSource(seed)})
}

func mustOpen(t require.TestingT, fs vfs.FS) *Log {
	l, err := open(fs, rand.Uint64())
	require.NoError(t, err)
	return l
}

func byteSource(seed uint64) io.Reader {
	var b [32]byte
	for i := range 8 {
		b[i] = byte(seed >> (8 * i))
	}
	return rand.NewChaCha8(b)
}

// The segment log does what replicas rely on, with segments that change within a test
// and with one that does not.
func TestConformance(t *testing.T) {
	for name, bytes := range map[string]int64{"small": testSegment, "large": 256 << 10} {
		t.Run(name, func(t *testing.T) {
			logtest.Run(t, func(t require.TestingT, fs vfs.FS) state.Log {
				l, err := Open(testDir, state.Options{FS: fs, LogSegmentBytes: bytes})
				require.NoError(t, err)
				return l
			})
		})
	}
}

// testRanges: the first is a laggard, whose entries stay while others come and go.
func testRanges() []geo.RangeID { return []geo.RangeID{2, 4, 5} }

// logState is all of a log as one string.
func logState(l *Log) (string, error) {
	var b strings.Builder
	for _, id := range testRanges() {
		g, err := l.Range(id, nil)
		if err != nil {
			return "", err
		}
		m, err := logtest.Read(g)
		if err != nil {
			return "", err
		}
		b.WriteString(m.String() + "\n")
	}
	return b.String(), nil
}

// story does random commits on a log and knows which states a crash may leave.
type story struct {
	l      *Log
	rng    *rand.Rand
	models map[geo.RangeID]*logtest.Model
	// states are the log after each commit; those from synced on may be found.
	states []string
	synced int
}

func newStory(t require.TestingT, l *Log, rng *rand.Rand) *story {
	s := &story{l: l, rng: rng, models: map[geo.RangeID]*logtest.Model{}}
	for _, id := range testRanges() {
		m, err := logtest.Read(logtest.Range(t, l, id))
		require.NoError(t, err)
		s.models[id] = m
	}
	s.states = []string{s.text()}
	return s
}

func (s *story) text() string {
	var b strings.Builder
	for _, id := range testRanges() {
		b.WriteString(s.models[id].String() + "\n")
	}
	return b.String()
}

// commit stages a few steps and commits them. The laggard has a step now and then;
// the others are trimmed.
func (s *story) commit(sync bool) error {
	b := s.l.NewBatch()
	for range 1 + s.rng.IntN(3) {
		id := testRanges()[1+s.rng.IntN(2)]
		if s.rng.IntN(8) == 0 {
			id = testRanges()[0]
		}
		g, _ := s.l.Range(id, nil)
		m := s.models[id]
		var err error
		if keep := uint64(10); id != testRanges()[0] && len(m.Entries) > 20 {
			index := m.Last() - keep
			m.Trim(index)
			err = g.Trim(b, index)
		} else if id == testRanges()[0] {
			entries := logtest.Entries(m.Last()+1, 1, 1, s.rng.IntN(2000))
			m.Append(entries...)
			err = g.Append(b, entries)
		} else {
			err = logtest.Step(s.rng, g, m, b, 3000)
		}
		if err != nil {
			return err
		}
	}
	s.states = append(s.states, s.text())
	if err := b.Commit(sync); err != nil {
		return err
	}
	if sync {
		s.synced = len(s.states) - 1
	}
	return nil
}

// hookFS asks before each change of the file system whether it may be; an error stands
// in its place.
type hookFS struct {
	vfs.FS
	before func(op, path string) error
}

type hookFile struct {
	vfs.File
	fs   *hookFS
	path string
}

// OpenRaw implements rawfile.FS.
func (fs *hookFS) OpenRaw(path string, direct bool) (rawfile.File, error) {
	raw := rawfile.Of(fs.FS)
	if raw == nil {
		return nil, rawfile.ErrNoDirect
	}
	f, err := raw.OpenRaw(path, direct)
	return &hookRaw{f, fs, path}, err
}

type hookRaw struct {
	rawfile.File
	fs   *hookFS
	path string
}

// WriteVec implements rawfile.File.
func (f *hookRaw) WriteVec(off int64, parts ...[]byte) error {
	if err := f.fs.before("write", f.path); err != nil {
		return err
	}
	return f.File.WriteVec(off, parts...)
}

func (fs *hookFS) wrap(path string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &hookFile{f, fs, path}, nil
}

func (fs *hookFS) Create(path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := fs.before("create", path); err != nil {
		return nil, err
	}
	f, err := fs.FS.Create(path, c)
	return fs.wrap(path, f, err)
}

func (fs *hookFS) OpenReadWrite(path string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(path, c, opts...)
	return fs.wrap(path, f, err)
}

func (fs *hookFS) OpenDir(path string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(path)
	return fs.wrap(path, f, err)
}

func (fs *hookFS) Rename(from, to string) error {
	if err := fs.before("rename", from); err != nil {
		return err
	}
	return fs.FS.Rename(from, to)
}

func (fs *hookFS) Remove(path string) error {
	if err := fs.before("remove", path); err != nil {
		return err
	}
	return fs.FS.Remove(path)
}

func (f *hookFile) Write(p []byte) (int, error) {
	if err := f.fs.before("write", f.path); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *hookFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.before("write", f.path); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

func (f *hookFile) Sync() error {
	if err := f.fs.before("sync", f.path); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *hookFile) SyncData() error {
	if err := f.fs.before("sync", f.path); err != nil {
		return err
	}
	return f.File.SyncData()
}

func hardState(term, vote, commit uint64) *pb.HardState {
	return &pb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}
