import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import type { AccessLog } from "#gen/envoy/config/accesslog/v3/accesslog_pb.ts";
import { FileAccessLogSchema } from "#gen/envoy/extensions/access_loggers/file/v3/file_pb.ts";
import { TcpGrpcAccessLogConfigSchema } from "#gen/envoy/extensions/access_loggers/grpc/v3/als_pb.ts";
import { unpacked } from "../../../test/support/translated.ts";
import { accessLogs, listenerAccessLogs } from "./access-log.ts";

const mesh = (given: Partial<MeshConfig>): MeshConfig => ({ ...DEFAULT_MESH_CONFIG, accessLogFile: "/log", ...given });
function formatOf([log]: AccessLog[]) {
  const file = unpacked(FileAccessLogSchema, log?.configType.case === "typedConfig" ? log.configType.value : undefined);
  assert.equal(file.path, "/log");
  assert.equal(file.accessLogFormat.case, "logFormat");
  return file.accessLogFormat.case === "logFormat" ? file.accessLogFormat.value : undefined;
}
function textOf(given: Partial<MeshConfig>): string | undefined {
  const format = formatOf(accessLogs(mesh(given), "http"))?.format;
  return format?.case === "textFormatSource" ? String(format.value.specifier.value) : undefined;
}
function jsonOf(accessLogFormat: string) {
  const format = formatOf(accessLogs(mesh({ accessLogEncoding: "JSON", accessLogFormat }), "http"))?.format;
  return format?.case === "jsonFormat" ? format.value : undefined;
}

test("there is no log without a file", () => {
  assert.deepEqual(accessLogs(DEFAULT_MESH_CONFIG, "http"), []);
  assert.deepEqual(listenerAccessLogs(DEFAULT_MESH_CONFIG), []);
});

test("a line ends", () => {
  assert.ok(textOf({})?.endsWith("%ROUTE_NAME%\n"));
  assert.equal(textOf({ accessLogFormat: "%PROTOCOL%" }), "%PROTOCOL%\n");
  assert.equal(textOf({ accessLogFormat: "%PROTOCOL%\n" }), "%PROTOCOL%\n");
});

test("a format that is no JSON object is left aside for the usual one", () => {
  for (const format of ["", "[1]", "null", "3", "{", "text"]) assert.equal(jsonOf(format)?.method, "%REQ(:METHOD)%");
  assert.deepEqual(jsonOf('{"a": "%PROTOCOL%"}'), { a: "%PROTOCOL%" });
});

test("commands that Envoy does not know are plain text, however deep", () => {
  assert.equal(textOf({ accessLogFormat: "%FOO%" }), "%%FOO%%\n");
  assert.deepEqual(jsonOf('{"a": {"b": ["%FOO%", 1, null]}}'), { a: { b: ["%%FOO%%", 1, null] } });
});

test("an extension is loaded where a command needs it", () => {
  const formatters = (accessLogFormat: string) =>
    formatOf(accessLogs(mesh({ accessLogFormat }), "http"))?.formatters.length;
  assert.equal(formatters("%REQ_WITHOUT_QUERY(:PATH)%"), 1);
  assert.equal(formatters("%REQ(:PATH)%"), 0);
});

test("a listener logs what none of its chains took, unless that is turned off", () => {
  const [log] = listenerAccessLogs(mesh({}));
  assert.equal(log?.filter?.filterSpecifier.case, "responseFlagFilter");
  assert.deepEqual(listenerAccessLogs(mesh({ disableEnvoyListenerLog: true })), []);
});

test("the service that collects logs comes beside the file, or alone", () => {
  const namesOf = (logs: AccessLog[]) => logs.map(({ name }) => name);
  const both = mesh({ enableEnvoyAccessLogService: true });
  assert.deepEqual(namesOf(accessLogs(both, "http")), ["envoy.access_loggers.file", "envoy.access_loggers.http_grpc"]);
  assert.deepEqual(namesOf(accessLogs({ ...both, accessLogFile: "" }, "tcp")), ["envoy.tcp_grpc_access_log"]);
  const [log] = listenerAccessLogs({ ...both, accessLogFile: "" });
  const config = log?.configType.case === "typedConfig" ? log.configType.value : undefined;
  assert.equal(unpacked(TcpGrpcAccessLogConfigSchema, config).commonConfig?.logName, "listener_envoy_accesslog");
  assert.equal(log?.filter?.filterSpecifier.case, "responseFlagFilter");
  assert.deepEqual(listenerAccessLogs({ ...both, disableEnvoyListenerLog: true }), []);
});
