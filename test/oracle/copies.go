package oracle

import (
	"fmt"
	"sync"

	"antipode/geo"
)

// Found is the destination of copies as a reader finds it.
type Found struct {
	// Read has the tag of the destination. Its state is that of the source when it was copied; of a name that was put,
	// that of the put.
	Read
	// Source is the key that it was copied from, and ID names the copy; both are "" for a name that was put.
	Source, ID string
}

// overwrite is one write of a destination: a copy, a put or a deletion.
type overwrite struct {
	source, id string
	deletes    bool
	// floor and ceiling bound the versions of the source while it was copied. Of a put both are its number.
	floor, ceiling Version
	fate           fate
	etag           string
	// at is the commit time of an acknowledged write; of a deletion an instant at or after it.
	at geo.Timestamp
	// begun and ended order requests and answers; ended is zero while the write may still happen.
	begun, ended int
	// before is the greatest commit time that was acknowledged when a deletion was sent.
	before geo.Timestamp
}

// destination is the writes of one name.
type destination struct {
	writes []*overwrite
	// events numbers requests, answers and reads.
	events int
	puts   Version
	// shown is what reads have shown, by tag. unnamed are the tags in it that no answer has named.
	shown   map[string]Found
	unnamed map[string]bool
	// seen is the greatest commit time that a read at the primary has shown, and seenBegun when the last read that showed
	// something began.
	seen      geo.Timestamp
	seenBegun int
	// resolved is what the last Resolve found.
	resolved Found
}

// Copies checks the reads of names that keys of an oracle are copied to. Several clients may write a name at the same
// time: the commit times, which answers and reads give, order their writes. Methods may be called concurrently.
//
// Invariant: a read is found good only if some outcome of the unanswered writes, together with every acknowledged
// one, explains it: it shows the newest of them, and of a copy one version of its source that was the newest between
// request and answer.
type Copies struct {
	oracle *Oracle
	mu     sync.Mutex
	names  map[string]*destination
	order  []string
}

// NewCopies returns a check of copies of the keys of o.
func NewCopies(o *Oracle) *Copies { return &Copies{oracle: o, names: map[string]*destination{}} }

// of returns the writes of a name. The caller holds mu.
func (c *Copies) of(name string) *destination {
	d := c.names[name]
	if d == nil {
		d = &destination{shown: map[string]Found{}, unnamed: map[string]bool{}}
		c.names[name] = d
		c.order = append(c.order, name)
	}
	return d
}

func (d *destination) event() int {
	d.events++
	return d.events
}

// Overwrite is a write of a destination that has no outcome yet.
type Overwrite struct {
	c    *Copies
	name string
	w    *overwrite
	// Number is that of a put.
	Number Version
}

// Copy begins a copy of a key onto a name.
func (c *Copies) Copy(name, source string) *Overwrite {
	floor := c.oracle.Resolved(source)
	return c.begin(name, func(*destination) *overwrite { return &overwrite{source: source, floor: floor} })
}

// Put begins a write of a name that is no copy.
func (c *Copies) Put(name string) *Overwrite {
	return c.begin(name, func(d *destination) *overwrite {
		d.puts++
		return &overwrite{floor: d.puts, ceiling: d.puts}
	})
}

// Delete begins the deletion of a name.
func (c *Copies) Delete(name string) *Overwrite {
	return c.begin(name, func(d *destination) *overwrite {
		return &overwrite{deletes: true, before: d.newest(Now, d.events)}
	})
}

func (c *Copies) begin(name string, write func(*destination) *overwrite) *Overwrite {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.of(name)
	w := write(d)
	w.begun = d.event()
	d.writes = append(d.writes, w)
	return &Overwrite{c: c, name: name, w: w, Number: w.floor}
}

// Acked records that a write was acknowledged. An error means that no store can have given this answer.
func (o *Overwrite) Acked(etag, id string, at geo.Timestamp) error {
	ceiling := o.w.ceiling
	if o.w.source != "" {
		ceiling = o.c.oracle.Begun(o.w.source)
	}
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	d := o.c.of(o.name)
	if !o.w.deletes {
		for _, w := range d.writes {
			if w.etag == etag {
				return fmt.Errorf("%w: %s: %s was answered before", ErrChanged, o.name, etag)
			}
		}
	}
	o.w.fate, o.w.ended, o.w.ceiling = applied, d.event(), ceiling
	o.w.etag, o.w.id, o.w.at = etag, id, at
	delete(d.unnamed, etag)
	if f, ok := d.shown[etag]; ok && !o.w.deletes {
		return o.c.explains(o.name, o.w, f)
	}
	return nil
}

// Refused records that a write certainly did not happen.
func (o *Overwrite) Refused() {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	o.w.fate, o.w.ended = refused, o.c.of(o.name).event()
}

// Lost records that no answer came: the write may happen until Resolve.
func (o *Overwrite) Lost() {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	o.w.fate = lost
}

// NotThere records the answer that there is no source, which it cannot be if it was there all the time.
func (o *Overwrite) NotThere() error {
	o.Refused()
	if _, must := o.c.oracle.Presence(o.w.source, o.w.floor); must {
		return fmt.Errorf("%w: %s is not there to be copied", ErrLost, o.w.source)
	}
	return nil
}

// newest is the greatest commit time up to a sync time among the writes that were acknowledged by an event. The
// caller holds mu.
func (d *destination) newest(sync geo.Timestamp, event int) (at geo.Timestamp) {
	for _, w := range d.writes {
		if w.stands(sync, event) {
			at = max(at, w.at)
		}
	}
	return at
}

// stands reports whether a write with content was acknowledged by an event, and is where everything up to a sync time
// is.
func (w *overwrite) stands(sync geo.Timestamp, event int) bool {
	return w.fate == applied && !w.deletes && w.ended <= event && w.at <= sync
}

// Since is what a read must show, by when it began.
type Since struct {
	sync  geo.Timestamp
	event int
	// Newest is the commit time that it must show at least. above is one that was deleted.
	Newest geo.Timestamp
	above  geo.Timestamp
}

// Since is called before a read of a name where everything up to a sync time has arrived.
func (c *Copies) Since(name string, sync geo.Timestamp) Since {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.of(name)
	s := Since{sync: sync, event: d.event()}
	s.Newest = d.newest(sync, s.event)
	if sync == Now {
		s.Newest = max(s.Newest, d.seen)
	}
	for _, w := range d.writes {
		if w.deletes && w.fate == applied && w.ended <= s.event && w.at <= sync {
			s.above = max(s.above, w.before)
		}
	}
	return s
}

// Read checks a read of a name.
func (c *Copies) Read(name string, s Since, f Found) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read(name, s, f)
}

// read is Read for a caller that holds mu.
func (c *Copies) read(name string, s Since, f Found) error {
	d := c.of(name)
	if !f.Present {
		return d.absent(name, s)
	}
	short := ErrLost
	if s.sync != Now {
		short = ErrBehind
	}
	if w := d.answered(f); w != nil && w.etag != f.ETag {
		return fmt.Errorf("%w: %s: %v acknowledged as %s", ErrTag, name, f, w.etag)
	}
	switch before, seen := d.shown[f.ETag]; {
	case f.At < s.Newest:
		return fmt.Errorf("%w: %s: found %v at %v, which was replaced at %v", short, name, f, f.At, s.Newest)
	case f.At <= s.above:
		return fmt.Errorf("%w: %s: found %v at %v, which was deleted", ErrBack, name, f, f.At)
	case seen && before != f:
		return fmt.Errorf("%w: %s: found %v, before %v", ErrChanged, name, f, before)
	}
	if err := c.explained(name, s, f); err != nil {
		return err
	}
	d.shown[f.ETag] = f
	if s.sync == Now {
		d.seen, d.seenBegun = max(d.seen, f.At), max(d.seenBegun, s.event)
	}
	return nil
}

// answered returns the acknowledged write that names what was found, nil if there is none. The caller holds mu.
func (d *destination) answered(f Found) *overwrite {
	for _, w := range d.writes {
		if w.fate == applied && !w.deletes && w.id == f.ID && w.source == f.Source && (f.Source != "" || w.floor == f.Last) {
			return w
		}
	}
	return nil
}

// absent checks a read that found nothing: a deletion that was not answered before the writes that must be there has
// to explain it. The caller holds mu.
func (d *destination) absent(name string, s Since) error {
	if s.Newest == 0 {
		return nil
	}
	begun := 0
	if s.sync == Now {
		begun = d.seenBegun
	}
	for _, w := range d.writes {
		if w.stands(s.sync, s.event) {
			begun = max(begun, w.begun)
		}
	}
	for _, w := range d.writes {
		if w.deletes && w.fate != refused && (w.ended == 0 || w.ended > begun) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s is not there, written at %v", ErrLost, name, s.Newest)
}

// explained requires a write that has left what was found. The caller holds mu.
func (c *Copies) explained(name string, s Since, f Found) error {
	d := c.of(name)
	open, explained := 0, false
	why := fmt.Errorf("%w: %s: found %v", ErrInvented, name, f)
	for _, w := range d.writes {
		switch {
		case w.deletes:
		case w.fate == applied && w.etag == f.ETag:
			return c.explains(name, w, f)
		case w.fate == lost, w.fate == pending:
			open++
			// What Resolve has not found does not come any more, but the other location may show it for a while.
			if w.source == f.Source && (w.ended == 0 || s.sync != Now) && !explained {
				why = c.explains(name, w, f)
				explained = why == nil
			}
		}
	}
	if _, seen := d.shown[f.ETag]; seen {
		return nil
	}
	d.unnamed[f.ETag] = true
	if len(d.unnamed) > open {
		return fmt.Errorf("%w: %s: found %v, %d writes that were not answered, of %d",
			ErrInvented, name, f, len(d.unnamed), open)
	}
	return why
}

// explains requires that a write leaves what was found: of a copy a version that its source had meanwhile. The caller
// holds mu.
func (c *Copies) explains(name string, w *overwrite, f Found) error {
	ceiling := w.ceiling
	if w.source != "" && w.fate != applied {
		ceiling = c.oracle.Begun(w.source)
	}
	switch {
	case w.source != f.Source || w.fate == applied && w.id != f.ID:
		return fmt.Errorf("%w: %s: found %v, answered was the copy %q of %q", ErrChanged, name, f, w.id, w.source)
	case w.source == "" && f.State != State{Present: true, Last: w.floor, Base: w.floor}:
		return fmt.Errorf("%w: %s: found %v, put was %d", ErrChanged, name, f, w.floor)
	case w.source != "" && !c.oracle.Between(w.source, w.floor, ceiling, f.State):
		return fmt.Errorf("%w: %s: found %v, the versions of the source were %d to %d", ErrChanged, name, f, w.floor, ceiling)
	}
	return nil
}

// Resolve checks a read at the primary while nobody writes. What has no answer then does not happen any more.
func (c *Copies) Resolve(name string, s Since, f Found) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.read(name, s, f); err != nil {
		return err
	}
	d := c.of(name)
	d.resolved = f
	for _, w := range d.writes {
		if w.fate == lost && w.ended == 0 {
			w.ended = s.event
		}
	}
	return nil
}

// Final checks a read at the secondary that must show exactly what Resolve has found.
func (c *Copies) Final(name string, f Found) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if want := c.of(name).resolved; f != want {
		return fmt.Errorf("%w: %s: found %v, the primary has %v", ErrBehind, name, f, want)
	}
	return nil
}

// Names returns the names that were written.
func (c *Copies) Names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order[:len(c.order):len(c.order)]
}

// Newest is the greatest time of a write that was acknowledged.
func (c *Copies) Newest() (at geo.Timestamp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.names {
		for _, w := range d.writes {
			at = max(at, w.at)
		}
	}
	return at
}

func (f Found) String() string {
	if f.Source == "" {
		return fmt.Sprintf("%v %s", f.State, f.ETag)
	}
	return fmt.Sprintf("%v of %s %s", f.State, f.Source, f.ETag)
}
