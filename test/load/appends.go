package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"antipode/services/storageerr"
	"antipode/test/oracle"
	"antipode/test/rest"
)

const (
	// recordBytesMin is above what the header of a record takes, and so is the distance of two positions.
	recordBytesMin = 64
	// resends is how often a client sends again what it appends at a position, if no answer comes.
	resends = 2
)

// recordBytes is the content of a record: a line with its number and size, and bytes that depend on both.
func recordBytes(log string, n oracle.Version, size int) []byte {
	head := fmt.Sprintf("%08d %08d\n", n, size)
	return append([]byte(head), bytesOf(log, head, size-len(head))...)
}

// recordsOf takes a log apart. Every byte must be of the record that its line names.
func recordsOf(log string, content []byte) (all []oracle.Record, err error) {
	for at := 0; at < len(content); {
		var n, size int
		line, _, _ := strings.Cut(string(content[at:min(at+recordBytesMin, len(content))]), "\n")
		if _, err := fmt.Sscanf(line, "%d %d", &n, &size); err != nil || size < recordBytesMin || size > len(content)-at {
			return nil, fmt.Errorf("%w: log %s of %d bytes: record %q at %d", errTorn, log, len(content), line, at)
		}
		if string(recordBytes(log, oracle.Version(n), size)) != string(content[at:at+size]) {
			return nil, fmt.Errorf("%w: log %s: record %d at %d", errTorn, log, n, at)
		}
		all = append(all, oracle.Record{Number: oracle.Version(n), Offset: int64(at)})
		at += size
	}
	return all, nil
}

// readLog reads a log, which is nothing where it is not there.
func readLog(ctx context.Context, c *rest.Client, name string) (all []oracle.Record, etag string, err error) {
	a, err := c.GetBlob(ctx, logContainer, name)
	if notThere(a, err) {
		return nil, "", nil
	}
	if err := unanswered(name, a, err); err != nil {
		return nil, "", err
	}
	all, err = recordsOf(name, a.Body)
	return all, a.Header.Get("ETag"), err
}

// appender is a client that appends to the log of a slot.
type appender struct {
	*Load
	slot *slot
	rng  *rand.Rand
}

func (p *appender) run(ctx context.Context) error {
	for ctx.Err() == nil {
		took, err := p.step(ctx)
		if err != nil {
			return err
		}
		if !took {
			pause(ctx, backoff)
		}
		pause(ctx, backoff+p.opts.Pause)
	}
	return nil
}

// step appends a record, or reads the log. took is false if nothing happened.
func (p *appender) step(ctx context.Context) (took bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
	defer cancel()
	b, err := p.slot.log(ctx)
	if err != nil || b == nil {
		return false, err
	}
	if p.rng.IntN(10) == 0 {
		err := p.readAt(ctx, b)
		if isNoAnswer(err) {
			return false, nil
		}
		return true, err
	}
	size := recordBytesMin + p.rng.IntN(2<<10)
	if p.rng.IntN(5) == 0 {
		size = 15<<10 + p.rng.IntN(20<<10) // On both sides of what travels in the log.
	}
	position, doomed := int64(oracle.AnyPosition), false
	if p.rng.IntN(2) == 0 {
		position = b.Floor()
		if doomed = p.rng.IntN(10) == 0; doomed {
			position++ // No record begins so close to another one.
		}
	}
	return p.append(ctx, b, size, position, doomed)
}

// append appends one record. With a position it is sent again if no answer comes, since it can be there only once; one
// without is not.
func (p *appender) append(ctx context.Context, b *logBlob, size int, position int64, doomed bool) (took bool, err error) {
	n, ok := b.begin(int64(size), position)
	if !ok {
		return false, nil
	}
	content := recordBytes(b.name, n, size)
	for sent := 0; ; sent++ {
		a, err := p.Primary.Append(ctx, logContainer, b.name, position, content)
		switch {
		case err != nil && rest.NeverSent(err), isBusy(a, err),
			err == nil && a.Code == storageerr.AppendPositionNotMet.Code && position >= 0:
			if sent > 0 {
				b.Lost(n) // Not this time, perhaps before.
				return false, nil
			}
			b.Refused(n)
			if doomed && err == nil && a.Status == http.StatusPreconditionFailed {
				p.count(Refused)
			}
			return false, nil
		case err != nil || a.Status >= http.StatusInternalServerError:
			if position < 0 || sent == resends || ctx.Err() != nil {
				b.Lost(n)
				return false, nil
			}
			pause(ctx, backoff)
			continue
		case a.Status == http.StatusCreated && doomed:
			return false, fmt.Errorf("%w: %d of %s, appended though no log ends at %d", oracle.ErrMoved, n, b.name, position)
		case a.Status != http.StatusCreated:
			return false, fmt.Errorf("%w: append of %d to %s at %d: %v", ErrContradiction, n, b.name, position, a)
		}
		return true, p.appended(b, n, a)
	}
}

// appended takes the answer to an append that was done.
func (p *appender) appended(b *logBlob, n oracle.Version, a rest.Answer) error {
	offset, count, err := a.Appended()
	at, ok := a.CommitTime()
	if err != nil || !ok {
		return fmt.Errorf("%w: append of %d to %s: %w, ETag %q", ErrContradiction, n, b.name, err, a.Header.Get("ETag"))
	}
	if err := b.Acked(n, offset, count, a.Header.Get("ETag"), at); err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	p.count(Appends)
	return nil
}

// isBusy reports whether an answer is that nothing happened, because the server is busy.
func isBusy(a rest.Answer, err error) bool {
	return err == nil && a.Status == http.StatusServiceUnavailable && a.Code == storageerr.ServerBusy.Code
}
