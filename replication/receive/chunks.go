package receive

import (
	"time"

	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// chunks fetches payload that pulled records name and this location lacks, before the records are
// applied. All pulls together hold ChunkBytesMax at most, each chunksParallel chunks, and
// they get their chunks in turn.
type chunks struct {
	bytes int
	// line are the pulls that may ask for one more chunk once there is room.
	line []chunkPull
}

type chunkPull struct {
	rr *rangeReceiver
	p  *pull
}

// chunksParallel bounds the chunks of one pull that are under way.
const chunksParallel = 4

func (rr *rangeReceiver) missingPayload(rec *change.Record) []extent.Ref {
	var missing []extent.Ref
	for _, ref := range rec.Chunks {
		if !rr.r.o.Applier.HasPayload(ref) {
			missing = append(missing, ref)
		}
	}
	return missing
}

// enlist puts a pull at the end of the line, if it may ask for a chunk, and asks for what there is room.
func (c *chunks) enlist(rr *rangeReceiver, p *pull) {
	if !p.listed && len(p.missing) > 0 && p.chunks < chunksParallel {
		p.listed = true
		c.line = append(c.line, chunkPull{rr, p})
	}
	c.serve(rr.r.o.ChunkBytesMax)
}

// serve asks for chunks in turn while there is room; one chunk may be larger than all of it.
func (c *chunks) serve(bytesMax int) {
	for len(c.line) > 0 {
		next := c.line[0]
		p := next.p
		if next.rr.pulls.of[p.stream] != p {
			p.missing = nil // Its stream was stopped or refused meanwhile.
		}
		if len(p.missing) > 0 {
			ref := p.missing[0]
			if c.bytes > 0 && c.bytes+int(ref.Length) > bytesMax {
				return
			}
			p.missing = p.missing[1:]
			p.chunks++
			c.bytes += int(ref.Length)
			next.rr.fetch(p, ref)
		}
		c.line = c.line[1:]
		if p.listed = len(p.missing) > 0 && p.chunks < chunksParallel; p.listed {
			c.line = append(c.line, next)
		}
	}
}

// fetch copies one chunk to this location.
func (rr *rangeReceiver) fetch(p *pull, ref extent.Ref) {
	end := func(err error) {
		rr.r.post(func(now time.Duration) { rr.fetched(p, ref, err, now) })
	}
	rr.r.o.Source.Chunk(ref, func(data []byte, err error) {
		if err != nil {
			end(err)
			return
		}
		rr.r.o.Applier.PutPayload(ref, data, end)
	})
}

// fetched goes on with the next chunk. Once all are here, or one could not be had, the record is pulled
// again.
func (rr *rangeReceiver) fetched(p *pull, ref extent.Ref, err error, now time.Duration) {
	c := &rr.r.chunks
	c.bytes -= int(ref.Length)
	p.chunks--
	at := p.at
	if err != nil {
		at = now + rr.r.o.RetryAfter
	}
	if err != nil {
		p.missing = nil
	}
	c.enlist(rr, p)
	rr.pulls.schedule(p, at)
}
