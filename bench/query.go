package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
)

// scanItems is the number of entities of a query and of blobs of a page: for
// entities the most that the protocol allows.
const scanItems = 1000

// scanBatches is the number of transactions that write the entities of a query.
const scanBatches = scanItems / batchEntities

// written draws from the transactions that the workers wrote, one set of scanBatches of them at a time.
type written struct {
	batches *batches
	rng     *rand.Rand
	// sets were dealt out to the workers in turn.
	sets, workers int
}

func newWritten(o Options, name string, id int) written {
	return written{
		batches: newBatches(o, name, scanBatches), rng: rand.New(rand.NewPCG(uint64(id), 2)),
		sets: scanUnits(o), workers: o.Concurrency,
	}
}

// newScan makes the scan of a workload that queries entities.
func newScan(o Options, name string, id int) scan {
	from := newWritten(o, name, id)
	switch o.Workload {
	case workloadRange:
		return &query{written: from, transactions: 1}
	case workloadSearch:
		return &search{written: from}
	}
	return &query{written: from, transactions: scanBatches}
}

// scanUnits is the number of sets of entities, or of pages of blobs, that --rows makes.
func scanUnits(o Options) int { return max(1, o.Rows/scanItems) }

// set draws the first transaction of a set.
func (w *written) set() object {
	set := w.rng.IntN(w.sets)
	return object{set % w.workers, set / w.workers * scanBatches}
}

// query is the scan of as many neighbouring entities of one partition as some transactions wrote: all of a set, or
// a part of it. A page that ends before them is continued: the scan is of as many requests as that takes.
type query struct {
	written
	transactions int
	first        object
	// token continues the query, whose pages so far had found entities; empty begins one.
	token string
	found int
}

func (q *query) next() *call {
	if q.token == "" {
		q.first, q.found = q.set(), 0
		q.first.n += q.rng.IntN(scanBatches/q.transactions) * q.transactions
	}
	c := q.batches.query(q.first, q.transactions)
	c.query += q.token
	return c
}

func (q *query) check(a answer) (more bool, err error) {
	n, err := q.batches.checkFeed(q.first, q.transactions, q.found, a.next != "", a.body)
	if q.token = a.next; err != nil {
		q.token = ""
	}
	q.found += n
	return q.token != "", err
}

// search looks for one entity by a property, which is of no key: all pages of the table are read, each
// from where the one before ended.
type search struct {
	written
	wanted object
	// index is the entity's in the transaction that wrote it.
	index int
	// token continues the search; empty begins one.
	token string
	found int
	query []byte
}

func (s *search) next() *call {
	if s.token == "" {
		s.wanted, s.index, s.found = s.set(), s.rng.IntN(batchEntities), 0
		s.wanted.n += s.rng.IntN(scanBatches)
		s.batches.wordOf(s.wanted, s.index)
		// The text of a value begins with a word that ends with a hyphen, and a period comes next to that.
		word := s.batches.word
		s.query = fmt.Appendf(s.query[:0], "$filter=V%%20ge%%20'%s'%%20and%%20V%%20lt%%20'%s.'", word, word[:len(word)-1])
	}
	return &call{
		method: http.MethodGet, path: "/" + s.batches.name + "()", query: string(s.query) + s.token, headers: acceptJSON,
	}
}

// check reports whether a page has no entity but the one that is looked for, and the last page whether it was found.
func (s *search) check(a answer) (more bool, err error) {
	s.token = a.next
	if n := bytes.Count(a.body, []byte(`"RowKey":`)); n > 0 {
		if _, err := s.batches.cutEntity(s.wanted, s.index, a.body); err != nil {
			s.token = ""
			return false, err
		}
		s.found += n
	}
	if s.token == "" && s.found != 1 {
		return false, fmt.Errorf("entity %d of %v was found %d times", s.index, s.wanted, s.found)
	}
	return s.token != "", nil
}
