// What both the test in Node and the one in a browser do with the grpc-web package: a read, a refusal and a stream.
import grpcWeb from "grpc-web";

const { GrpcWebClientBase, MethodDescriptor, MethodType } = grpcWeb;

// method describes a method of ours to grpc-web, with the messages of protobuf.js.
function method(root, service, name, type = MethodType.UNARY) {
  const request = root.lookupType(`signet.v1.${name}Request`);
  const response = root.lookupType(`signet.v1.${name}Response`);
  return new MethodDescriptor(
    `/signet.v1.${service}/${name}`, type, request.ctor, response.ctor,
    (message) => request.encode(request.fromObject(message)).finish(),
    (bytes) => response.toObject(response.decode(bytes), { longs: String, enums: String }),
  );
}

// tryAll gives what happened, as text to compare.
export async function tryAll(root, { base, token, format }) {
  const client = new GrpcWebClientBase({ format });
  const metadata = { authorization: `Bearer ${token}` };
  const call = (m, message, headers = metadata) => new Promise((resolve, reject) =>
    client.rpcCall(base + m.getName(), message, headers, m, (error, answer) => (error ? reject(error) : resolve(answer))));
  const found = {};

  found.read = (await call(method(root, "UserService", "GetMyUser"), {})).user.state;
  const refusal = (what, headers) => call(method(root, "UserService", "UpdateMyProfile"), what, headers).then(
    () => "no error", (error) => `${error.code} ${error.message.includes("firstName") || error.message.includes("token")}`);
  found.invalid = await refusal({ lastName: "L" });
  found.unauthenticated = await refusal({}, {});

  if (format === "text") { // the binary mode of grpc-web has no streams
    found.stream = await new Promise((resolve, reject) => {
      const types = [];
      const events = method(root, "EventService", "StreamEvents", MethodType.SERVER_STREAMING);
      const stream = client.serverStreaming(`${base}${events.getName()}`, { allOrganizations: true, from: { seconds: 1 } }, metadata, events);
      stream.on("data", ({ event }) => {
        if (event && types.push(event.type) === 3) { // while the stream lasts
          stream.cancel();
          resolve(types.slice(0, 3));
        }
      });
      stream.on("error", reject);
    });
  }
  return found;
}
