package main

import "math/rand/v2"

// scanItems is the number of entities of a query and of blobs of a page: for
// entities the most that the protocol allows.
const scanItems = 1000

// scanBatches is the number of transactions that write the entities of a query.
const scanBatches = scanItems / batchEntities

// query is the scan of the entities of one partition, one set of scanItems of them at
// a time, drawn from all that the workers wrote.
type query struct {
	batches *batches
	rng     *rand.Rand
	// sets were dealt out to the workers in turn.
	sets, workers int
	first         object
}

func newQuery(o Options, name string, id int) *query {
	return &query{
		batches: newBatches(o, name, scanBatches), rng: rand.New(rand.NewPCG(uint64(id), 2)),
		sets: scanUnits(o), workers: o.Concurrency,
	}
}

// scanUnits is the number of different queries, or pages, that --rows makes.
func scanUnits(o Options) int { return max(1, o.Rows/scanItems) }

func (q *query) next() *call {
	set := q.rng.IntN(q.sets)
	q.first = object{set % q.workers, set / q.workers * scanBatches}
	return q.batches.query(q.first, scanBatches)
}

func (q *query) check(body []byte) error {
	return q.batches.checkFeed(q.first, scanBatches, body)
}
