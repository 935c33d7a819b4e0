package membership

import (
	"cmp"
	"encoding/binary"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/durable"
	"antipode/stamp/replica"
)

// Marks are what a node remembers, over restarts, of the replicas on other nodes: how far each reported that it has
// persisted its log (replica.Replica.Mark). A node whose disk was set back presents less than that when its location
// restarts, and nothing on that disk shows it. So a node without a leader has the others recall what it remembers of them,
// in each tick: one that restarts does not vote for an election timeout, in which it learns that it is lost (R4).
//
// The file is written behind the reports, so a crash forgets the last keepTicks. A reported mark never becomes
// wrong: a replica with an earlier one was set back, however old the mark is. All methods but Write are called from the
// node's scheduler.
type Marks struct {
	fs  vfs.FS
	dir string
	log *slog.Logger

	of map[markOf]LogMark
	// reported are the marks of the replicas here, as last sent.
	reported map[geo.RangeID]LogMark
	// changed: of has what no write has begun with. writing is true while one is under way.
	changed bool
	writing atomic.Bool
}

type markOf struct {
	id   geo.RangeID
	node geo.NodeID
}

const (
	marksFile    = "marks"
	marksVersion = 1
	marksHead    = 1 + 2
	marksEach    = 4 + 8 + 8 + 8 + 8
	// keepTicks is how many ticks lie between two writes of the file: 10 s, since each costs fsyncs.
	keepTicks = 100
)

// OpenMarks reads what the node of a folder remembers. A file that cannot be read counts as none: it is then as if the
// peers had reported nothing yet. log takes failures.
func OpenMarks(fs vfs.FS, dir string, log *slog.Logger) *Marks {
	k := &Marks{fs: fs, dir: dir, log: log, of: map[markOf]LogMark{}, reported: map[geo.RangeID]LogMark{}}
	b, err := durable.Read(fs, fs.PathJoin(dir, marksFile))
	if err != nil {
		log.Warn("cannot read what this node remembers of its peers: one whose disk was set back may be trusted", "file", marksFile, "error", err)
	}
	if of, ok := parseMarks(b); ok {
		k.of = of
		k.forgetFormer()
	}
	return k
}

// forgetFormer drops the marks of ranges in which this node took no part yet. The file is then of a former stamp in the
// same folder, whose replicas had the same ids: by its marks healthy replicas of a stamp made now would be lost. The file
// is written before one of them begins.
func (k *Marks) forgetFormer() {
	before := len(k.of)
	maps.DeleteFunc(k.of, func(of markOf, _ LogMark) bool {
		d, err := Load(k.fs, k.dir, of.id)
		return err == nil && (d == nil || d.Phase == Joining)
	})
	if len(k.of) < before {
		k.write(encodeMarks(k.of))
	}
}

// Manage reports the mark of the replica here to the other nodes of its range, if it has moved and due is set, or if again is
// set. While the replica knows no leader it has each of them recall its own.
func (k *Marks) Manage(id geo.RangeID, rep *replica.Replica, due, again bool, send func(geo.NodeID, Message)) {
	lead, _ := rep.Leader()
	if rep.Lost() == nil && lead == 0 {
		for _, m := range rep.Members().List {
			k.recall(id, rep, m.Node, send)
		}
	}
	if !due {
		return
	}
	at := rep.Mark()
	_, term := rep.Leader()
	own := LogMark{Replica: rep.ID(), Index: at.Index, Term: at.Term, In: term}
	if at.Index == 0 || own == k.reported[id] && !again {
		return
	}
	k.reported[id] = own
	for _, m := range rep.Members().List {
		if m.ID != rep.ID() {
			send(m.Node, own)
		}
	}
}

// recall sends a node what is remembered of its replica.
func (k *Marks) recall(id geo.RangeID, rep *replica.Replica, to geo.NodeID, send func(geo.NodeID, Message)) {
	m, _ := rep.Members().On(to)
	if mark, ok := k.of[markOf{id, to}]; ok && mark.Replica == m.ID && m.ID != rep.ID() {
		send(to, mark)
	}
}

// Receive takes a message of another node about a range: a mark, or the question of one without a leader.
func (k *Marks) Receive(id geo.RangeID, rep *replica.Replica, from geo.NodeID, msg Message, send func(geo.NodeID, Message)) {
	switch msg := msg.(type) {
	case RecoveryReport:
		if lead, _ := rep.Leader(); lead != 0 { // Else it is sent in each tick.
			k.recall(id, rep, from, send)
		}
	case LogMark:
		at := geo.EntryID{Term: msg.Term, Index: msg.Index}
		if msg.Replica == rep.ID() {
			rep.Recall(at, from)
		} else if m, ok := rep.Members().Of(msg.Replica); ok && m.Node == from {
			rep.Prove(at, msg.In, from)
			k.remember(markOf{id, from}, msg)
		}
	}
}

// remember keeps the later of two marks: that of the later replica, or the higher one.
func (k *Marks) remember(of markOf, mark LogMark) {
	mark.In = 0
	if old := k.of[of]; cmp.Or(cmp.Compare(mark.Replica, old.Replica), cmp.Compare(mark.Index, old.Index)) > 0 {
		k.of[of], k.changed = mark, true
	}
}

// Of returns what is remembered of the replica of a range on a node; zero for none.
func (k *Marks) Of(id geo.RangeID, node geo.NodeID) LogMark { return k.of[markOf{id, node}] }

// Keep has what is remembered be written, by run, in every keepTicks-th tick in which it has changed.
func (k *Marks) Keep(tick uint64, run func(func())) {
	if !k.changed || tick%keepTicks != 0 || !k.writing.CompareAndSwap(false, true) {
		return
	}
	k.changed = false
	b := encodeMarks(k.of)
	run(func() {
		defer k.writing.Store(false)
		k.write(b)
	})
}

// Close writes what has changed since. Nothing that Keep began may be under way.
func (k *Marks) Close() {
	if k.changed {
		k.write(encodeMarks(k.of))
	}
}

func (k *Marks) write(b []byte) {
	if err := durable.Replace(k.fs, k.dir, marksFile, b); err != nil {
		k.log.Warn("cannot write what this node remembers of its peers: the file of before stays", "file", marksFile, "error", err)
	}
}

// encodeMarks is what the file has: docs/format/marks.md.
func encodeMarks(of map[markOf]LogMark) []byte {
	b := binary.LittleEndian.AppendUint16([]byte{marksVersion}, uint16(len(of)))
	for _, of1 := range slices.SortedFunc(maps.Keys(of), func(a, b markOf) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.node, b.node))
	}) {
		m := of[of1]
		b = binary.LittleEndian.AppendUint32(b, uint32(of1.id))
		for _, v := range []uint64{uint64(of1.node), uint64(m.Replica), m.Index, m.Term} {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return binary.LittleEndian.AppendUint32(b, crc.Of(b))
}

// parseMarks decodes the file. One that is damaged, or of another version, is none.
func parseMarks(b []byte) (map[markOf]LogMark, bool) {
	if len(b) < marksHead || b[0] != marksVersion {
		return nil, false
	}
	n := marksHead + marksEach*int(binary.LittleEndian.Uint16(b[1:]))
	if len(b) != n+4 || !crc.Fits(b) {
		return nil, false
	}
	of := map[markOf]LogMark{}
	for b = b[marksHead:n]; len(b) > 0; b = b[marksEach:] {
		v := func(i int) uint64 { return binary.LittleEndian.Uint64(b[4+8*i:]) }
		of[markOf{geo.RangeID(binary.LittleEndian.Uint32(b)), geo.NodeID(v(0))}] = LogMark{Replica: geo.ReplicaID(v(1)), Index: v(2), Term: v(3)}
	}
	return of, true
}
