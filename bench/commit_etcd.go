package main

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
)

// etcd is a client of one member; with several members it should be the leader, which
// saves a hop. A put is two byte fields, so that no client library is needed.
type etcd struct{ conn *grpc.ClientConn }

func openEtcd(ctx context.Context, o Options, _ string) (committer, error) {
	conn, err := grpc.NewClient(o.Etcd, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	if err != nil {
		return nil, err
	}
	e := etcd{conn}
	if err := commitOne(ctx, e, []byte("first"), []byte("value")); err != nil {
		err = fmt.Errorf("etcd at %s does not take writes; start it, or name another with --etcd: %w", o.Etcd, err)
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Fields of PutRequest in etcd's rpc.proto.
const (
	putKey   protowire.Number = 1
	putValue protowire.Number = 2
)

func (e etcd) commit(ctx context.Context, key, value []byte) error {
	request := protowire.AppendBytes(protowire.AppendTag(nil, putKey, protowire.BytesType), key)
	request = protowire.AppendBytes(protowire.AppendTag(request, putValue, protowire.BytesType), value)
	var answer []byte
	return e.conn.Invoke(ctx, "/etcdserverpb.KV/Put", &request, &answer)
}

// Close implements io.Closer.
func (e etcd) Close() error { return e.conn.Close() }

// rawCodec sends and takes messages as *[]byte.
type rawCodec struct{}

// Marshal implements encoding.Codec.
func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

// Unmarshal implements encoding.Codec.
func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

// Name implements encoding.Codec.
func (rawCodec) Name() string { return "proto" }
