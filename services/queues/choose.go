package queues

import (
	"cmp"
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// dictionaryAge is how old a dictionary may be that commands are made of without a look at the present one. A command
	// made of one that is too old is refused by the head of its subqueue, so this bounds only how long a subqueue that was
	// made elsewhere gets no messages from here.
	dictionaryAge = time.Second
	// dictionariesBytesMax bounds what is kept of dictionaries, in bytes, where one costs queueBytes and entryBytes for
	// each of its subqueues; beyond it all are forgotten.
	dictionariesBytesMax = 16 << 20
	queueBytes           = 768
	entryBytes           = 128
)

// known is the dictionary of a queue as it was read, and how full its subqueues were at the last command from here.
// That is enough to keep them even, which is all that the choice is for.
type known struct {
	dictionary *Dictionary
	read       time.Duration // monotonic
	left       map[SubqueueID]uint64
}

// knowledge is what is known of the queues that were used lately. The zero value knows nothing. Methods may be called
// concurrently.
type knowledge struct {
	mu     sync.Mutex
	queues map[Queue]*known
	// held is what queues hold, in bytes. Guarded by mu.
	held int
}

func (d *Dictionary) bytes() int { return queueBytes + entryBytes*len(d.Subqueues) }

// dictionary returns a dictionary that was read after since.
func (k *knowledge) dictionary(q Queue, since time.Duration) (d *Dictionary, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.queues[q]
	if of == nil || of.read <= since {
		return nil, false
	}
	return of.dictionary, true
}

// learn keeps a dictionary whose read began at a time.
func (k *knowledge) learn(q Queue, d *Dictionary, read time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.queues[q]
	if of != nil && of.read > read {
		return // Of two reads the one that began later is not older.
	}
	if of != nil {
		k.held -= of.dictionary.bytes()
	}
	if k.queues == nil || k.held+d.bytes() > dictionariesBytesMax {
		k.queues, k.held, of = map[Queue]*known{}, 0, nil
	}
	if of == nil {
		of = &known{left: map[SubqueueID]uint64{}}
		k.queues[q] = of
	}
	k.held += d.bytes()
	of.dictionary, of.read = d, read
	maps.DeleteFunc(of.left, func(id SubqueueID, _ uint64) bool {
		_, is := d.entry(id)
		return !is
	})
}

// used keeps how full a subqueue is.
func (k *knowledge) used(at Subqueue, left uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if of := k.queues[at.Queue]; of != nil && len(of.dictionary.Subqueues) > 1 {
		of.left[at.ID] = left
	}
}

// forget drops what is known of a queue.
func (k *knowledge) forget(q Queue) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if of := k.queues[q]; of != nil {
		k.held -= of.dictionary.bytes()
		delete(k.queues, q)
	}
}

// left returns how full a subqueue was; unknown for one that was not used from here.
func (k *knowledge) left(at Subqueue, unknown uint64) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if of := k.queues[at.Queue]; of != nil {
		if n, is := of.left[at.ID]; is {
			return n
		}
	}
	return unknown
}

// chooser makes the choices of protocol/queue.md 20.
type chooser struct {
	random io.Reader
	known  knowledge
}

// intn returns a random number below n.
func (c *chooser) intn(n int) (int, error) {
	if n < 2 {
		return 0, nil
	}
	var b [8]byte
	_, err := io.ReadFull(c.random, b[:])
	return int(binary.LittleEndian.Uint64(b[:]) % uint64(n)), err
}

// forPut returns the emptier of two random subqueues of the newest schema that take messages.
func (c *chooser) forPut(q Queue, d *Dictionary) (Subqueue, error) {
	in := d.with(StateAll)
	newest := slices.MaxFunc(in, bySchema).Schema
	in = slices.DeleteFunc(in, func(e Entry) bool { return e.Schema != newest })
	a, err := c.draw(&in)
	if err != nil || len(in) == 0 {
		return Subqueue{q, a.ID}, err
	}
	b, err := c.draw(&in)
	if c.known.left(Subqueue{q, b.ID}, 0) < c.known.left(Subqueue{q, a.ID}, 0) {
		a = b
	}
	return Subqueue{q, a.ID}, err
}

// forGet returns the subqueues to ask for messages, in their order: those of the oldest schema first, of these the
// fuller of two random ones, then the others.
func (c *chooser) forGet(q Queue, d *Dictionary) (out []Subqueue, err error) {
	in := d.with(StateAll, StateAllExceptPut)
	for len(in) > 0 {
		oldest := slices.MinFunc(in, bySchema).Schema
		var same, rest []Entry
		for _, e := range in {
			if e.Schema == oldest {
				same = append(same, e)
			} else {
				rest = append(rest, e)
			}
		}
		at := len(out)
		for len(same) > 0 {
			e, err := c.draw(&same)
			if err != nil {
				return nil, err
			}
			out = append(out, Subqueue{q, e.ID})
		}
		const unknown = ^uint64(0) // So that it is asked, and known.
		if of := out[at:]; len(of) > 1 && c.known.left(of[1], unknown) > c.known.left(of[0], unknown) {
			of[0], of[1] = of[1], of[0]
		}
		in = rest
	}
	return out, nil
}

// draw takes a random entry out of some.
func (c *chooser) draw(in *[]Entry) (Entry, error) {
	i, err := c.intn(len(*in))
	if err != nil {
		return Entry{}, err
	}
	e := (*in)[i]
	*in = slices.Delete(*in, i, i+1)
	return e, nil
}

func bySchema(a, b Entry) int { return cmp.Compare(a.Schema, b.Schema) }

// newID returns a random id of a message, in the form of a GUID of sealedVersion.
func (c *chooser) newID() (id MessageID, err error) {
	_, err = io.ReadFull(c.random, id[:])
	id[6], id[8] = id[6]&0x0f|sealedVersion<<4, id[8]&0x3f|0x80
	return id, err
}

// newSubqueue returns a random id of a subqueue.
func (c *chooser) newSubqueue() (SubqueueID, error) {
	var b [8]byte
	for {
		if _, err := io.ReadFull(c.random, b[:]); err != nil {
			return 0, err
		}
		if id := SubqueueID(binary.LittleEndian.Uint64(b[:])); id != 0 {
			return id, nil
		}
	}
}
