package queues

import (
	"context"
	"net/http"
	"time"

	"antipode/api/operation"
	"antipode/api/protocol"
	"antipode/geo"
	"antipode/services"
	"antipode/services/catalog"
	"antipode/services/queues"
	"antipode/stamp/ranges"
)

// Stamp is the stamp of this location.
type Stamp interface {
	ranges.Reader
	ranges.Routed
}

// Messages is what the queues of this location hold: see queues.Service.
type Messages interface {
	Put(ctx context.Context, q queues.Queue, o queues.PutOptions) (queues.Message, error)
	Get(ctx context.Context, q queues.Queue, limit int, timeout time.Duration) ([]queues.Message, error)
	Peek(ctx context.Context, r ranges.Reader, q queues.Queue, limit int) ([]queues.Message, error)
	Update(
		ctx context.Context, q queues.Queue, id queues.MessageID, receipt string, timeout time.Duration, text []byte,
	) (queues.Message, error)
	Delete(ctx context.Context, q queues.Queue, id queues.MessageID, receipt string) error
	Clear(ctx context.Context, q queues.Queue) error
	Count(ctx context.Context, r ranges.Reader, q queues.Queue) (uint64, error)
}

// Options configures a Handler. Stamp, Writer, Names and Messages are required.
type Options struct {
	// Stamp reads this location's ranges.
	Stamp    Stamp
	Writer   services.Writer
	Names    *catalog.Containers
	Messages Messages
	// Scans shares the processors among the pages of the process. Nil shares nothing.
	Scans *services.Scans
	// NameRest is how long a queue's name rests after a deletion.
	NameRest time.Duration
	// InFlightBytesMax bounds the bodies that are held at once, in bytes, and half of it those of one account.
	// Zero means 64 MiB. The rest wait, unread.
	InFlightBytesMax int64
	// AnswersBytesMax bounds what is held for answers at once, in bytes, and half of it that of one account. Zero
	// means 64 MiB.
	AnswersBytesMax int64
}

const (
	defaultInFlightBytesMax = 64 << 20
	defaultAnswersBytesMax  = 64 << 20
)

// Handler answers queue calls. Serve may be called concurrently.
type Handler struct {
	o        Options
	inFlight *protocol.InFlight
	answers  *protocol.InFlight
	windows  protocol.Windows
}

// NewHandler returns a handler.
func NewHandler(o Options) *Handler {
	if o.InFlightBytesMax == 0 {
		o.InFlightBytesMax = defaultInFlightBytesMax
	}
	if o.AnswersBytesMax == 0 {
		o.AnswersBytesMax = defaultAnswersBytesMax
	}
	longest := operation.Named(geo.Queue, "PutMessage").BodyMax(protocol.Newest)
	return &Handler{
		o: o, inFlight: protocol.NewInFlightOfDocuments(o.InFlightBytesMax, longest), answers: protocol.NewInFlight(o.AnswersBytesMax),
	}
}

// call is one request on its way.
type call struct {
	*Handler
	w   http.ResponseWriter
	r   *protocol.Request
	ctx context.Context // The request's own; a call lives no longer.
	// asked is the operation that the request asks for.
	asked operation.Match
	path  path
	// hold is what the request's body holds; nil before it is read.
	hold *protocol.Hold
}

// Serve answers a request for the operation that Lookup found.
func (h *Handler) Serve(w http.ResponseWriter, r *protocol.Request, m operation.Match) error {
	c := &call{Handler: h, w: w, r: r, ctx: r.HTTP.Context(), asked: m}
	defer func() { c.hold.Release() }()
	if err := protocol.CheckVerb(r.HTTP.Method); err != nil {
		return err
	}
	if err := protocol.CheckRepeated(r.HTTP.Header); err != nil {
		return err
	}
	return c.run()
}

// reader reads what the ranges of this location have of the account.
func (c *call) reader() ranges.Reader {
	return ranges.OfAccount(c.o.Stamp, c.r.Account.Name, c.r.Account.GeoEpoch(), c.r.Secondary)
}

// container reads the queue's row, unless that came with the request.
func (c *call) container() (q *catalog.Container, err error) {
	if found := c.r.Container; found != nil {
		return found.Container, found.Err
	}
	err = c.reader().Read(c.ctx, c.o.Stamp.Route().Catalog(), func(s ranges.State) error {
		q, err = c.o.Names.Get(s, geo.Queue, c.r.Account.Name, c.path.queue)
		return err
	})
	return q, err
}

// queue resolves the queue to its generation.
func (c *call) queue() (queues.Queue, error) {
	q, err := c.container()
	if err != nil {
		return queues.Queue{}, err
	}
	return c.queueOf(q), nil
}

// queueOf has the name as the catalog has it: what is kept of a queue would keep the whole target of the request with that
// of the path.
func (c *call) queueOf(q *catalog.Container) queues.Queue {
	return queues.Queue{Account: c.r.Account.Name, Name: q.Name, Generation: q.Generation()}
}

// body reads the request's body, which the operation takes.
func (c *call) body() ([]byte, error) {
	c.hold = c.inFlight.Hold(c.r)
	return protocol.ReadWhole(c.ctx, c.r, c.hold, c.asked.BodyMax(c.r.Version))
}
