// Uses grpc-web on a page of another origin.
import protobuf from "protobufjs/light";
import { tryAll } from "./grpc-web.js";
import definition from "./definition.json";

const root = protobuf.Root.fromJSON(definition);
window.tried = (options) => tryAll(root, options);
