// Reads our proto files for protobuf.js.
import protobuf from "protobufjs";
import path from "node:path";

const proto = path.resolve(import.meta.dirname, "../../../proto");

export async function load() {
  const root = new protobuf.Root();
  root.resolvePath = (_, target) => {
    if (target.startsWith("google/protobuf/")) return path.join(import.meta.dirname, "node_modules/protobufjs", target);
    return path.join(proto, /^(google|buf)\//.test(target) ? "third_party" : "", target);
  };
  return root.load(["signet/v1/user.proto", "signet/v1/event.proto"]);
}
