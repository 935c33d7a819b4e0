package seglog

// deque is a list that grows at the back and shrinks at both ends. Its memory is
// bounded by twice the most it held since it was last half empty.
type deque[T any] struct {
	items []T
	head  int
}

func (d *deque[T]) len() int { return len(d.items) - d.head }

func (d *deque[T]) at(i int) *T { return &d.items[d.head+i] }

func (d *deque[T]) push(v T) { d.items = append(d.items, v) }

// dropBack removes the last n items, and what they point to is let go.
func (d *deque[T]) dropBack(n int) {
	keep := len(d.items) - n
	clear(d.items[keep:])
	d.items = d.items[:keep]
}

// dropFirst removes the first n items.
func (d *deque[T]) dropFirst(n int) {
	clear(d.items[d.head : d.head+n])
	d.head += n
	const slack = 64
	if kept := d.len(); d.head > kept+slack {
		if cap(d.items) > 4*(kept+slack) {
			d.items = append(make([]T, 0, 2*(kept+slack)), d.items[d.head:]...)
		} else {
			copy(d.items, d.items[d.head:])
			clear(d.items[kept:])
			d.items = d.items[:kept]
		}
		d.head = 0
	}
}
