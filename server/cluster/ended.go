package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"antipode/internal/clock"
)

// Ended is the error of processes that have exited by themselves. The others go on: a location serves with two of its
// nodes.
type Ended struct {
	// Processes are those, with their last words.
	Processes []Process
	// Running is how many others run.
	Running int
	// Dir is the folder of the cluster.
	Dir string
}

// Error is a line for each process, and what to do.
func (e *Ended) Error() string {
	var b strings.Builder
	for _, p := range e.Processes {
		_, _ = fmt.Fprintf(&b, "%s ended: %s (%s)\n", p.Name, p.Why, p.Log)
	}
	others := "none runs"
	if e.Running > 0 {
		others = fmt.Sprintf("the other %d run", e.Running)
	}
	_, _ = fmt.Fprintf(&b, "%s; mend the cause and give the same command again, or end all with: antipode cluster stop --dir %s", others, e.Dir)
	return b.String()
}

// endedSettle is how long a start waits, after a process has ended, for what the cause does to others.
const endedSettle = time.Second

// someEnded returns the Ended of now, after others had the time to end of the same cause.
func (o Options) someEnded(ctx context.Context) error {
	if err := clock.Wait(ctx, endedSettle); err != nil {
		return err
	}
	return o.ended()
}

// ended returns Ended if processes that Start started have exited, or were stopped.
func (o Options) ended() error {
	e := &Ended{Dir: o.Dir}
	for _, m := range o.plan() {
		p, running, err := o.find(m.name)
		switch {
		case err != nil:
			return err
		case running:
			e.Running++
		case p.pid != 0 || o.launched(m.name):
			e.Processes = append(e.Processes, Process{Name: m.name, State: Exited, Why: o.lastWords(m.name, p), Log: o.log(m.name)})
		}
	}
	if len(e.Processes) == 0 {
		return nil
	}
	return e
}

// launched reports whether Start has ever launched a process, which its log shows: without a process file it was stopped since.
func (o Options) launched(name string) bool {
	_, err := os.Stat(o.log(name))
	return err == nil
}

func (o Options) log(name string) string { return filepath.Join(o.folder(name), logFile) }

// lastWords returns the line in which a process gives the error that ended it.
func (o Options) lastWords(name string, p process) string {
	if p.pid == 0 {
		return "it was stopped meanwhile"
	}
	const tail, wordsMax = 16 << 10, 400
	f, err := os.Open(o.log(name))
	if err != nil {
		return err.Error()
	}
	info, err := f.Stat()
	text := make([]byte, tail)
	if err == nil {
		text = text[:min(tail, max(0, info.Size()-p.logged))]
		_, err = f.ReadAt(text, info.Size()-int64(len(text)))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err.Error()
	}
	for _, line := range slices.Backward(strings.Split(string(text), "\n")) {
		words, is := strings.CutPrefix(line, "antipode: ")
		if is || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return words[:min(len(words), wordsMax)]
		}
	}
	return "no error in its log, as when it is killed"
}
