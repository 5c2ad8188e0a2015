"""Uses grpcio and the messages that protoc makes of our proto files, and prints what happened."""

import json
import sys

import grpc
from signet.v1 import event_pb2, user_pb2

target, token = sys.argv[1:]
metadata = [("authorization", "Bearer " + token)]


def method(channel, kind, service, name, messages):
    return getattr(channel, kind)(
        f"/signet.v1.{service}/{name}",
        request_serializer=getattr(messages, name + "Request").SerializeToString,
        response_deserializer=getattr(messages, name + "Response").FromString,
    )


with grpc.insecure_channel(target) as channel:
    read = method(channel, "unary_unary", "UserService", "GetMyUser", user_pb2)
    update = method(channel, "unary_unary", "UserService", "UpdateMyProfile", user_pb2)
    follow = method(channel, "unary_stream", "EventService", "StreamEvents", event_pb2)
    found = {"read": read(user_pb2.GetMyUserRequest(), metadata=metadata).user.user_id[:4]}
    try:
        update(user_pb2.UpdateMyProfileRequest(), metadata=metadata, timeout=10)
    except grpc.RpcError as error:
        details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        found["refused"] = [error.code().name, b"firstName" in details, "firstName" in error.details()]
    events = follow(event_pb2.StreamEventsRequest(all_organizations=True), metadata=metadata, timeout=10)
    found["stream"] = next(events).cursor != ""
    events.cancel()
print(json.dumps(found))
