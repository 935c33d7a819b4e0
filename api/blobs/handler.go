package blobs

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"antipode/api/auth"
	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
)

// Payload is where this location keeps chunks.
type Payload interface {
	// PutChunk makes a chunk durable on every node that is up, two at least. It does
	// not keep data.
	PutChunk(ctx context.Context, ref extent.Ref, data []byte) error
	// ReadChunk fills p from offset off of a chunk.
	ReadChunk(ref extent.Ref, off int64, p []byte) (int, error)
	// HoldChunks keeps chunks that are about to be read, whatever becomes of the blob, until release is called.
	HoldChunks(refs []extent.Ref) (release func())
}

// Stamp is the stamp of this location.
type Stamp interface {
	ranges.Reader
	ranges.Routed
}

// Options configures a Handler. Stamp, Writer, Payload and Names are required.
type Options struct {
	Stamp   Stamp
	Writer  services.AllWriter
	Payload Payload
	Names   *catalog.Containers
	// NameRest is how long a container's name rests after a deletion.
	NameRest time.Duration
	// Rehydration is how long an archived blob takes to get another tier. Zero means no time.
	Rehydration time.Duration
	// BodyBytesMax lowers the longest body of Put Blob and Put Block, in bytes. Zero
	// means what the protocol allows: up to 5000 and 4000 MiB. An upload is put chunk
	// by chunk, so a larger one costs time, not memory.
	BodyBytesMax int64
	// InFlightBytesMax bounds the bodies that are in memory at once, in bytes, and half of
	// it those of one account. Zero means 64 MiB. The rest wait, unread.
	InFlightBytesMax int64
	// AnswersBytesMax bounds the documents and buffers of answers that are held at once, in
	// bytes. Zero means 64 MiB. Near it listings end after fewer items.
	AnswersBytesMax int64
	// Scans shares the processors among the pages of the process. Nil shares nothing.
	Scans *services.Scans
	// Clock decides which uncommitted blocks and which leases have expired, for reads. Nil means the machine's.
	Clock clock.Clock
	// Rand draws ids of chunks and of leases; it is read concurrently. Nil means crypto/rand.
	Rand io.Reader
	// Abandoned is called with the bytes in chunks of every upload that failed: nothing
	// names them. What may still be committed does not count. Nil ignores it.
	Abandoned func(bytes int64)
	// Logger takes failures of payload that no answer can show. Nil means
	// slog.Default.
	Logger *slog.Logger
}

const (
	defaultInFlightBytesMax = 64 << 20
	defaultAnswersBytesMax  = 64 << 20
)

func (o Options) withDefaults() Options {
	if o.InFlightBytesMax == 0 {
		o.InFlightBytesMax = defaultInFlightBytesMax
	}
	if o.AnswersBytesMax == 0 {
		o.AnswersBytesMax = defaultAnswersBytesMax
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Abandoned == nil {
		o.Abandoned = func(int64) {}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Handler answers blob calls. Serve may be called concurrently.
type Handler struct {
	o        Options
	inFlight *protocol.InFlight
	putBufs  *extent.Buffers
	getBufs  sync.Pool // *[]byte of readBytes
	answers  *answers
	// sourceStall is how long a source elsewhere may take for too few bytes: protocol.SenderStallMax, or less in tests.
	sourceStall time.Duration
	// verifier checks the signatures of parts of batches, and serve is call.answer, which answers them: a handler cannot name
	// what looks up handlers.
	verifier auth.Verifier
	serve    func(*call) error
}

// NewHandler returns a handler.
func NewHandler(o Options) *Handler {
	o = o.withDefaults()
	return &Handler{
		o: o, inFlight: protocol.NewInFlightOf(o.InFlightBytesMax, operation.Named(geo.Blob, "PutBlockList").BodyMax(protocol.Newest)),
		// What inFlight lets in is never more than these: no upload waits for a buffer.
		putBufs: extent.NewBuffers(blobs.ChunkBytesMax, int(max(1, o.InFlightBytesMax/blobs.ChunkBytesMax))),
		getBufs: sync.Pool{New: func() any { b := make([]byte, readBytes); return &b }},
		answers: newAnswers(o.AnswersBytesMax), sourceStall: protocol.SenderStallMax,
		verifier: auth.Verifier{Clock: o.Clock, FutureSkew: auth.DateWindow}, serve: (*call).answer,
	}
}

// lookupMax is how long a question to a range may take: a download may take longer by
// far.
const lookupMax = 30 * time.Second

// call is one request on its way.
type call struct {
	*Handler
	w   http.ResponseWriter
	r   *protocol.Request
	ctx context.Context // The request's own; a call lives no longer.
	// asked is the operation that the request asks for.
	asked operation.Match
	res   resource
	in    input
	put   atomic.Int64 // bytes in chunks so far
	// bodyHold is what a body that is not cut into chunks holds; nil without such a body.
	bodyHold *protocol.Hold
	// turn is that of a part of a batch; nil for a request.
	turn *turn
}

// Serve answers a request for the operation that Lookup found.
func (h *Handler) Serve(w http.ResponseWriter, r *protocol.Request, m operation.Match) error {
	return (&call{Handler: h, w: w, r: r, ctx: r.HTTP.Context(), asked: m}).answer()
}

// answer answers the request, or the part of a batch.
func (c *call) answer() error {
	r := c.r
	if err := protocol.CheckVerb(r.HTTP.Method); err != nil {
		return err
	}
	if err := protocol.CheckRepeated(r.HTTP.Header); err != nil {
		return err
	}
	var err error
	if c.res, err = parseResource(r.Resource, lower(r.Query.Get("restype"))); err != nil {
		return err
	}
	err = c.run()
	if put := c.put.Load(); err != nil && put > 0 && !errors.Is(err, kv.ErrUnknown) {
		c.o.Abandoned(put)
	}
	return err
}

// reader reads what the ranges of this location have of the account.
func (c *call) reader() ranges.Reader {
	return ranges.OfAccount(c.o.Stamp, c.r.Account.Name, c.r.Account.GeoEpoch(), c.r.Secondary)
}

// ask runs a query on the leader of a range, within lookupMax: see ranges.Reader.
func (c *call) ask(r geo.RangeID, f func(ranges.State) error) error {
	ctx, cancel := context.WithTimeout(c.ctx, lookupMax)
	defer cancel()
	return c.reader().Read(ctx, r, f)
}

// container resolves the container to its generation.
func (c *call) container() (*catalog.Container, error) {
	if found := c.r.Container; found != nil {
		return found.Container, found.Err
	}
	var out *catalog.Container
	err := c.ask(c.o.Stamp.Route().Catalog(), func(s ranges.State) error {
		var err error
		out, err = c.o.Names.Get(s, geo.Blob, c.r.Account.Name, c.res.container)
		return err
	})
	return out, err
}

// rangeOf returns the range that holds a blob.
func (c *call) rangeOf(n blobs.Name) geo.RangeID { return c.o.Stamp.Route().Of(n.Partition()) }

// name resolves the addressed blob.
func (c *call) name() (blobs.Name, error) {
	container, err := c.container()
	if err != nil {
		return blobs.Name{}, err
	}
	return blobs.Name{
		Account: c.r.Account.Name, Container: c.res.container, Generation: container.Generation(), Blob: c.res.blob,
	}, nil
}

// command resolves the addressed blob for a write under the request's guard.
func (c *call) command() (blobs.Command, error) {
	n, err := c.name()
	guard := c.in.guard
	guard.CreateOnly = c.r.Access.CreatesOnly()
	return blobs.Command{Name: n, Guard: guard}, err
}

// snapshot returns a state of a range, within lookupMax: see ranges.Snapshot.
func (c *call) snapshot(r geo.RangeID) (kv.Snapshot, error) {
	if err := c.ctx.Err(); err != nil {
		return nil, err // The client is gone, or its time is over.
	}
	ctx, cancel := context.WithTimeout(c.ctx, lookupMax)
	defer cancel()
	return ranges.Snapshot(ctx, c.reader(), r)
}

// now is the time by which uncommitted blocks and leases expire.
func (c *call) now() geo.Timestamp { return geo.TimestampOf(c.o.Clock.Now()) }
