package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"antipode/client/admin"
	"antipode/internal/clock"
)

const (
	sampleInterval = 500 * time.Millisecond
	// clockTicks per second is the unit of /proc/PID/stat on Linux.
	clockTicks = 100
)

// server is what the run knows of the process it measures.
type server struct {
	// admin is nil without --admin, and pid 0 where unknown.
	admin   *admin.Client
	pid     int
	account string
}

// watchServer finds the server's process.
func watchServer(ctx context.Context, o Options, _ clock.Clock) (*server, error) {
	s := &server{pid: o.PID, account: o.Account}
	if o.Admin == "" || o.StopLocation != "" { // Without its pair the backlog grows.
		return s, nil
	}
	var err error
	if s.admin, err = admin.New(o.Admin, nil); err != nil {
		return nil, err
	}
	status, err := s.admin.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("status of the server (--admin '' to go without): %w", err)
	}
	if s.pid == 0 {
		s.pid = status.Process.PID
	}
	return s, nil
}

// usage is processor time spent within the window. Server is negative where
// unknown.
type usage struct{ client, server time.Duration }

// measureUsage waits for both ends of the window and takes the difference.
func measureUsage(ctx context.Context, clk clock.Clock, window span, s *server) (usage, error) {
	pause(ctx, window.start.Sub(clk.Now()))
	before, err := s.usage()
	if err != nil {
		return usage{}, err
	}
	pause(ctx, window.end.Sub(clk.Now()))
	after, err := s.usage()
	if err != nil {
		return usage{}, err
	}
	u := usage{after.client - before.client, after.server - before.server}
	if s.pid == 0 {
		u.server = -1
	}
	return u, nil
}

func (s *server) usage() (usage, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return usage{}, fmt.Errorf("getrusage: %w", err)
	}
	u := usage{client: time.Duration(r.Utime.Nano() + r.Stime.Nano())}
	if s.pid == 0 {
		return u, nil
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		return usage{}, fmt.Errorf("processor time of the server: %w", err)
	}
	u.server, err = parseStat(string(b))
	return u, err
}

// peak is the most memory that the server's process had resident since it began, zero
// where it is not known.
func (s *server) peak() (int64, error) {
	if s.pid == 0 {
		return 0, nil
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		return 0, fmt.Errorf("memory of the server: %w", err)
	}
	_, rest, found := strings.Cut(string(b), "VmHWM:")
	if !found {
		return 0, fmt.Errorf("memory of the server: /proc/%d/status has no VmHWM", s.pid)
	}
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("memory of the server: %w", err)
	}
	return kib << 10, nil
}

// parseStat returns user plus system time of a /proc/PID/stat line. The name in
// the second field may hold anything, spaces and parentheses included.
func parseStat(line string) (time.Duration, error) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	const utime, stime = 11, 12 // fields 14 and 15 of the line
	if len(fields) <= stime {
		return 0, fmt.Errorf("/proc/PID/stat: %.80q is too short", line)
	}
	user, err1 := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("/proc/PID/stat: no times in %.80q", line)
	}
	return time.Duration(user+system) * time.Second / clockTicks, nil
}

// lagSamples are taken at even intervals through the window.
type lagSamples struct {
	// backlog is in records, over all ranges; lag is the age of the account's
	// oldest Last Sync Time.
	backlog []int64
	lag     []time.Duration
	// unknown counts the samples in which a Last Sync Time was absent.
	unknown int
}

// sample reads the status through the window. A status that does not come counts
// as unknown.
func (s *server) sample(ctx context.Context, clk clock.Clock, window span) lagSamples {
	var out lagSamples
	if s.admin == nil {
		return out
	}
	pause(ctx, window.start.Sub(clk.Now()))
	for ctx.Err() == nil && clk.Now().Before(window.end) {
		status, err := s.admin.Status(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			out.unknown++
		default:
			out.add(status, s.account)
		}
		pause(ctx, sampleInterval)
	}
	return out
}

func (l *lagSamples) add(status admin.Status, account string) {
	var backlog int64
	for _, location := range status.Locations {
		for _, r := range location.Ranges {
			if r.LeaderView != nil {
				backlog += r.BacklogRecords
			}
		}
	}
	l.backlog = append(l.backlog, backlog)
	lag, known := 0.0, false
	for _, a := range status.Accounts {
		if string(a.Name) != account {
			continue
		}
		known = len(a.Services) > 0
		for _, s := range a.Services {
			if s.LagSeconds == nil {
				known = false
				break
			}
			lag = max(lag, *s.LagSeconds)
		}
	}
	if !known {
		l.unknown++
		return
	}
	l.lag = append(l.lag, time.Duration(lag*float64(time.Second)))
}

// grows reports whether the backlog grew through the second half: its mean over
// the last quarter is above that over the third by more than half, and by more
// records than may wait at any moment. slack is that number.
func (l *lagSamples) grows(slack int64) (third, last int64, grew bool) {
	n := len(l.backlog)
	if n < 8 {
		return 0, 0, false
	}
	third, last = mean(l.backlog[n/2:n*3/4]), mean(l.backlog[n*3/4:])
	return third, last, last > third+third/2 && last > third+slack
}

func mean(v []int64) int64 {
	var sum int64
	for _, n := range v {
		sum += n
	}
	return sum / int64(len(v))
}
