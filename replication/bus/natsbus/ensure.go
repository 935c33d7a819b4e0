package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"antipode/geo"
	"antipode/replication/bus"
)

// consumerName is the one durable consumer of every stream.
const consumerName = "geo"

// Options names a stream and its limits. Source must be set; publisher and
// consumer of one stream should be given the same.
type Options struct {
	// Source is the location the changes come from.
	Source geo.Location
	// Bounds limits the stream, its consumer and the publisher's window.
	Bounds bus.Bounds
	// Replicas is how many servers hold the stream and its consumer. Zero means 1; 3
	// where the location has three servers. Ensure changes it in a stream that is
	// there; the servers may take half a minute to copy it.
	Replicas int
	// AckTimeout is how long a publish waits for the server's word before it ends
	// with bus.ErrUnavailable. Zero means 5 s. Below the round trip between
	// the locations it only makes duplicates.
	AckTimeout time.Duration
	// SilenceMax is how long a pull may bring nothing before the consumer checks,
	// with a small message, that the stream still stores and delivers; while all is
	// silent it does so for every second pull. A server that says nothing for about
	// as long counts as dead. Zero means 3 s. A short one only makes work: each message
	// costs the server two writes to its disk, and a stream whose ranges are at rest is
	// silent for half a minute.
	SilenceMax time.Duration
	// Closed reports whether the stream is to take no more messages, for want of room on the disk where it is stored. A
	// consumer asks twice a second; publishers then get bus.ErrFull, and what is stored is delivered as ever. Nil means
	// never.
	Closed func() bool
	// Alarm is called with the reason when the stream was found wrong: one of those below,
	// from any goroutine. Nil drops it.
	Alarm func(reason string)
	// Log takes what the consumer had to make again. Nil drops it.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Bounds = o.Bounds.WithDefaults()
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.AckTimeout == 0 {
		o.AckTimeout = 5 * time.Second
	}
	if o.SilenceMax == 0 {
		o.SilenceMax = 3 * time.Second
	}
	if o.Closed == nil {
		o.Closed = func() bool { return false }
	}
	if o.Alarm == nil {
		o.Alarm = func(string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate reports every option that cannot work.
func (o Options) Validate() error {
	var errs []error
	if o.Source == "" || strings.ContainsAny(string(o.Source), ".*>/\\ \t\r\n") {
		errs = append(errs, fmt.Errorf("natsbus: source location %q cannot be part of a subject", o.Source))
	}
	if o.Replicas < 0 {
		errs = append(errs, fmt.Errorf("natsbus: %d replicas", o.Replicas))
	}
	if o.AckTimeout < 0 || o.SilenceMax < 0 {
		errs = append(errs, errors.New("natsbus: a negative time"))
	}
	return errors.Join(errs...)
}

// StreamName is the name of the JetStream stream of a source location.
func StreamName(source geo.Location) string { return "GEO_" + string(source) }

// subjectPrefix is what every subject of the stream begins with.
func (o Options) subjectPrefix() string { return "geo." + string(o.Source) + "." }

// probeSubject is what the consumer publishes to when it checks a silent stream.
// Subjects of ranges have one part more.
func (o Options) probeSubject() string { return o.subjectPrefix() + "probe" }

// closedBytes is the bound of a stream that is closed: no message fits. What it holds stays, since it discards the new.
const closedBytes = 1

// streamConfig is the stream as it should be.
func (o Options) streamConfig() jetstream.StreamConfig {
	bytesMax := o.Bounds.BytesMax
	if o.Closed() {
		bytesMax = closedBytes
	}
	return jetstream.StreamConfig{
		Name:      StreamName(o.Source),
		Subjects:  []string{o.subjectPrefix() + ">"},
		Retention: jetstream.InterestPolicy,
		Discard:   jetstream.DiscardNew,
		MaxBytes:  bytesMax,
		Storage:   jetstream.FileStorage,
		Replicas:  o.Replicas,
	}
}

// closedSubject is the one subject of a stream whose consumer is not made yet.
// Nobody publishes to it.
func (o Options) closedSubject() string { return "geo-closed." + string(o.Source) }

func (o Options) consumerConfig() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       consumerName,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckAllPolicy,
		AckWait:       o.Bounds.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: o.Bounds.AckPendingMax,
		ReplayPolicy:  jetstream.ReplayInstantPolicy,
		// As many as the stream has, which retention by interest demands.
		Replicas: 0,
	}
}

// Ensure makes the stream and its durable consumer where they are missing, gives
// them the limits of o, and returns the incarnation: when the stream was made. A
// cluster that has no leader, or too few servers for o.Replicas, is asked again until
// ctx ends.
//
// With retention by interest a message that arrives while there is no consumer is
// confirmed and dropped. So a new stream gets a subject that nobody uses, then its
// consumer, then its real subjects; until then publishers get
// bus.ErrUnavailable. And an open stream whose consumer was deleted has lost
// what it held and went on confirming: it is deleted and made again, so that its
// loss shows in the incarnation. (When the consumer was made would show it too,
// but the server forgets that time when it restarts after an update.)
func Ensure(ctx context.Context, c *Conn, o Options) (time.Time, error) {
	if err := o.Validate(); err != nil {
		return time.Time{}, err
	}
	info, err := ensure(ctx, c, o.withDefaults())
	if err != nil {
		return time.Time{}, err
	}
	return info.Created.UTC(), nil
}

// ensure is Ensure with options that are complete. It returns the stream as it was
// found or made.
func ensure(ctx context.Context, c *Conn, o Options) (*jetstream.StreamInfo, error) {
	if got, known := c.payloadMax(); known && got < int64(o.Bounds.PayloadMax) {
		return nil, fmt.Errorf("natsbus: the server takes payloads of %d bytes, %d are needed", got, o.Bounds.PayloadMax)
	}
	pause := retryFirst
	for {
		info, err := ensureOnce(ctx, c.js, o)
		if err == nil || !passing(err) {
			return info, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
		pause = min(2*pause, retryLast)
	}
}

// askTimeout bounds one attempt: a cluster without a leader may not answer.
const askTimeout = 3 * time.Second

// ensureOnce is one attempt of ensure.
func ensureOnce(ctx context.Context, js jetstream.JetStream, o Options) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s, err := ensureStream(ctx, js, o)
	if err != nil {
		return nil, fmt.Errorf("natsbus: stream of %s: %w", o.Source, err)
	}
	if s, err = ensureConsumer(ctx, js, s, o); err != nil {
		return nil, fmt.Errorf("natsbus: consumer of %s: %w", o.Source, err)
	}
	want := o.streamConfig()
	if !sameStream(s.CachedInfo().Config, want) {
		if s, err = js.UpdateStream(ctx, want); err != nil {
			return nil, fmt.Errorf("natsbus: open stream of %s: %w", o.Source, err)
		}
	}
	return s.CachedInfo(), nil
}

// Codes of a cluster that is not complete; see the codes in publisher.go.
const (
	codeNoPeers         jetstream.ErrorCode = 10005 // no suitable peers for placement
	codeNotAvailable    jetstream.ErrorCode = 10008 // JetStream system temporarily unavailable
	codeStreamOffline   jetstream.ErrorCode = 10118 // stream is offline
	codeConsumerOffline jetstream.ErrorCode = 10119 // consumer is offline
)

// passing reports whether err is that of a cluster whose servers have not found each
// other, or too few of them: asked again it may do what it is asked.
func passing(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode {
		case codeNoPeers, codeNotAvailable, codeStreamOffline, codeConsumerOffline:
			return true
		}
		return false
	}
	// Nobody answered: no leader, or a server whose JetStream is not up yet.
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jetstream.ErrJetStreamNotEnabled)
}

// ensureStream finds the stream, or makes it closed.
func ensureStream(ctx context.Context, js jetstream.JetStream, o Options) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, StreamName(o.Source))
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return s, err
	}
	cfg := o.streamConfig()
	cfg.Subjects = []string{o.closedSubject()}
	// A server that is shut down while it makes a stream leaves the stream's store open, and
	// who ends ctx may own the server: the answer is awaited, at most askTimeout.
	making, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	s, err = js.CreateStream(making, cfg)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		// Another node made it in between, and may have opened it already.
		return js.Stream(ctx, cfg.Name)
	}
	return s, err
}

// ensureConsumer gives s its consumer, and returns s or what took its place.
func ensureConsumer(ctx context.Context, js jetstream.JetStream, s jetstream.Stream, o Options) (jetstream.Stream, error) {
	want := o.consumerConfig()
	q, err := s.Consumer(ctx, consumerName)
	switch {
	case err == nil && sameConsumer(q.CachedInfo().Config, want):
		return s, nil
	case err == nil:
		_, err = s.UpdateConsumer(ctx, want)
		return s, err
	case !errors.Is(err, jetstream.ErrConsumerNotFound):
		return nil, err
	}
	if !slices.Equal(s.CachedInfo().Config.Subjects, []string{o.closedSubject()}) {
		o.Log.Warn("stream lost its consumer and is made again", "source", o.Source)
		if err := js.DeleteStream(ctx, StreamName(o.Source)); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, err
		}
		if s, err = ensureStream(ctx, js, o); err != nil {
			return nil, err
		}
	}
	_, err = s.CreateOrUpdateConsumer(ctx, want)
	return s, err
}

// sameConsumer compares what consumerConfig sets and an update can change.
func sameConsumer(have, want jetstream.ConsumerConfig) bool {
	return have.AckPolicy == want.AckPolicy && have.AckWait == want.AckWait &&
		have.MaxDeliver == want.MaxDeliver && have.MaxAckPending == want.MaxAckPending &&
		have.Replicas == want.Replicas
}

// sameStream compares what streamConfig sets and an update can change. The server
// fills in the rest.
func sameStream(have, want jetstream.StreamConfig) bool {
	return slices.Equal(have.Subjects, want.Subjects) && have.Retention == want.Retention &&
		have.Discard == want.Discard && have.MaxBytes == want.MaxBytes &&
		have.Replicas == want.Replicas
}
