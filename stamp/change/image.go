package change

import (
	"encoding/binary"

	"antipode/geo"
)

// Image is how far the image of an account's rows in one range is: all its rows, numbered in their streams
// for a copy that begins empty (R17). It is a row of the source range, written in the group that
// has the records.
type Image struct {
	// Epoch is the epoch of the account that the image is of. The image of another epoch decides nothing.
	Epoch geo.Epoch
	// Next is the first key that the image has not come to yet, nil before the first.
	Next []byte
	// Done are the numbers of the last records of the account's streams, by lane, when the image had come
	// to the end; nil before. The copy is complete once the other location has applied them.
	Done []geo.Seq
	// Copied is what the image has come to. Total is what was counted in the range before the image began, in
	// steps and while clients wrote: what they have written or deleted since is not in it. When the image has come
	// to the end it is what that came to.
	Copied, Total ImageSize
}

// ImageSize is an amount of an account's data.
type ImageSize struct {
	Rows uint64
	// Bytes are those of keys and values, Payload those of the chunks that the rows name.
	Bytes, Payload uint64
}

// Add returns the sum of two amounts.
func (s ImageSize) Add(b ImageSize) ImageSize {
	return ImageSize{s.Rows + b.Rows, s.Bytes + b.Bytes, s.Payload + b.Payload}
}

// Less returns what an amount has more than a part of it.
func (s ImageSize) Less(b ImageSize) ImageSize {
	return ImageSize{s.Rows - b.Rows, s.Bytes - b.Bytes, s.Payload - b.Payload}
}

// AppendImage appends the encoded image.
func AppendImage(dst []byte, m Image) []byte {
	dst = binary.LittleEndian.AppendUint64(append(dst, formatVersion), uint64(m.Epoch.Number))
	dst = appendShort(dst, string(m.Epoch.Location))
	dst = append(binary.AppendUvarint(dst, uint64(len(m.Next))), m.Next...)
	dst = binary.AppendUvarint(dst, uint64(len(m.Done)))
	for _, n := range m.Done {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	for _, s := range [...]ImageSize{m.Copied, m.Total} {
		for _, v := range [...]uint64{s.Rows, s.Bytes, s.Payload} {
			dst = binary.AppendUvarint(dst, v)
		}
	}
	return dst
}

// ParseImage decodes an image that fills b. Next aliases b.
func ParseImage(b []byte) (Image, error) {
	rd := reader{b: b}
	m := readImage(&rd)
	if err := rd.end(); err != nil {
		return Image{}, err
	}
	return m, nil
}

func readImage(rd *reader) (m Image) {
	rd.version()
	m.Epoch.Number = geo.EpochNumber(rd.uint64())
	m.Epoch.Location = geo.Location(rd.short())
	if next := rd.bytes(); len(next) > 0 {
		m.Next = next
	}
	lanes := rd.count(1)
	rd.failed = rd.failed || lanes != 0 && lanes != geo.LaneCount
	if rd.failed {
		return Image{}
	}
	for range lanes {
		m.Done = append(m.Done, geo.Seq(rd.uvarint()))
	}
	for _, s := range [...]*ImageSize{&m.Copied, &m.Total} {
		s.Rows, s.Bytes, s.Payload = rd.uvarint(), rd.uvarint(), rd.uvarint()
	}
	return m
}

// Image appends how far the image of an account's rows is.
func (b *Builder) Image(a geo.Account, m Image) {
	start := b.begin(PartImage)
	b.buf = AppendImage(appendShort(b.buf, string(a)), m)
	b.end(start)
}

// ParseImagePart decodes a PartImage.
func ParseImagePart(b []byte) (geo.Account, Image, error) {
	rd := reader{b: b}
	a := geo.Account(rd.short())
	m := readImage(&rd)
	rd.failed = rd.failed || a == ""
	if err := rd.end(); err != nil {
		return "", Image{}, err
	}
	return a, m, nil
}
