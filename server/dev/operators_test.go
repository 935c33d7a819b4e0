package dev

import (
	"context"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/server/operator"
)

// Calls of operators, carried out in this process.

func (c *Cluster) startNode(ctx context.Context, l geo.Location, id geo.NodeID) error {
	_, err := operator.Do(ctx, c.admin, wire.CallStartNode, wire.At{Node: wire.NodeName(l, id)}, wire.None{})
	return err
}

func (c *Cluster) stopNode(ctx context.Context, l geo.Location, id geo.NodeID) error {
	_, err := operator.Do(ctx, c.admin, wire.CallStopNode, wire.At{Node: wire.NodeName(l, id)}, wire.None{})
	return err
}

func (c *Cluster) startLocation(ctx context.Context, l geo.Location) error {
	_, err := operator.Do(ctx, c.admin, wire.CallStartLocation, wire.At{Location: l}, wire.None{})
	return err
}

func (c *Cluster) stopLocation(ctx context.Context, l geo.Location) error {
	_, err := operator.Do(ctx, c.admin, wire.CallStopLocation, wire.At{Location: l}, wire.None{})
	return err
}

func (c *Cluster) recoverRange(ctx context.Context, l geo.Location, id geo.RangeID, in wire.RecoverRange) (wire.RangeRecovered, error) {
	return operator.Do(ctx, c.admin, wire.CallRecoverRange, wire.At{Location: l, Range: id}, in)
}

func (c *Cluster) confirmEpochs(ctx context.Context, l geo.Location) (wire.Epochs, error) {
	return operator.Do(ctx, c.admin, wire.CallConfirmEpochs, wire.At{Location: l}, wire.None{})
}

func (c *Cluster) resumeStream(ctx context.Context, l geo.Location, s wire.StreamName) (wire.Resumed, error) {
	return operator.Do(ctx, c.admin, wire.CallResume, wire.At{Location: l}, s)
}
