internal import EventLoop
internal import Glibc

/// A PostgreSQL server of one test, which can be stopped and restarted.
///
/// It listens only on a socket in its own directory, and is removed completely at the end.
public struct TemporaryCluster: Sendable {
    /// The directory of its socket.
    public let directory: String
    private let tools: String
    /// The loop that waits for the tools. The few threads of Swift's pool serve all tasks and must not block.
    private let loop: EventLoop

    /// The reason for which a cluster cannot be created.
    struct Unavailable: Error, CustomStringConvertible {
        let description: String
    }

    /// The URL of the superuser.
    public var url: String { "postgresql://postgres@%2F\(directory.dropFirst().replacing("/", with: "%2F"))/postgres" }

    /// Creates and starts a cluster, passes it to `body`, stops and removes it.
    public static func with<Result>(_ body: (TemporaryCluster) async throws -> Result) async throws -> Result {
        let cluster = try TemporaryCluster()
        try cluster.loop.start()
        defer { cluster.loop.stop() }
        do {
            try await cluster.run([
                cluster.tools + "initdb", "--username=postgres", "--auth=trust", "--no-sync", "--pgdata", cluster.data,
            ])
            try await cluster.start()
            let result = try await body(cluster)
            await cluster.remove()
            return result
        } catch {
            await cluster.remove()
            throw error
        }
    }

    /// The mode of a stop (`pg_ctl --mode`).
    public enum StopMode: String, Sendable {
        /// Ends sessions and rolls back their transactions.
        case fast
        /// Stops like a crash.
        case immediate
    }

    /// Starts the server and waits until it accepts connections.
    public func start() async throws {
        let options = "-k \(directory) -h '' -c fsync=off -c max_connections=40 -c shared_buffers=16MB"
        try await run([
            tools + "pg_ctl", "start", "--wait", "--timeout", "900", "--pgdata", data, "--log", directory + "/log",
            "-o", options,
        ])
    }

    /// Stops the server and waits for its end.
    public func stop(_ mode: StopMode) async throws {
        try await run([
            tools + "pg_ctl", "stop", "--wait", "--timeout", "900", "--pgdata", data, "--mode", mode.rawValue,
        ])
    }

    /// Stops the processes of the server and its sessions with SIGSTOP, like a hanging machine or disk.
    public func freeze() async throws { try await signal("STOP") }

    /// Continues the processes.
    public func thaw() async throws { try await signal("CONT") }

    private func signal(_ name: String) async throws {
        // PostgreSQL's processes are each in a session of their own. The postmaster is first, so that it starts no more
        // of them. One that has ended in the meantime is skipped.
        let script = """
            p=$(head -n 1 "$0/postmaster.pid") && kill -\(name) "$p"
            for child in $(pgrep -P "$p"); do kill -\(name) "$child" 2>/dev/null || [[ ! -e /proc/$child ]]; done
            """
        try await loop.run { [data] in try Subprocess.run(["bash", "-c", script, data]) }
    }

    private var data: String { directory + "/data" }

    private init() throws {
        tools = try Self.findTools()
        loop = try EventLoop(name: "cluster")
        directory = try Self.makeDirectory()
        if geteuid() == 0 { try Subprocess.run(["chown", "postgres:", directory]) }
    }

    /// Creates a directory in memory if enough is free: a thousand small files take several times as long on a disk.
    /// The path is short enough for a socket.
    private static func makeDirectory() throws -> String {
        var memory = statvfs()
        let hasMemory = statvfs("/dev/shm", &memory) == 0 && memory.f_bavail * memory.f_frsize > leastMemory
        var template = Array("\(hasMemory ? "/dev/shm" : "/tmp")/saltern-cluster-XXXXXX".utf8CString)
        guard let path = mkdtemp(&template) else { throw Unavailable(description: "mkdtemp: \(errno)") }
        return String(cString: path)
    }

    private static let leastMemory: UInt = 1 << 30

    /// Runs a tool. PostgreSQL rejects root, so root runs it as the system's own user.
    private func run(_ arguments: [String]) async throws {
        let change = geteuid() == 0 ? ["runuser", "-u", "postgres", "--"] : []
        try await loop.run { try Subprocess.run(change + arguments) }
    }

    /// Stops the server and removes the directory. A failure here does not fail a test.
    private func remove() async {
        try? await stop(.immediate)
        try? await loop.run { [directory] in try Subprocess.run(["rm", "-rf", directory]) }
    }

    /// Returns the folder of `initdb` and `pg_ctl`. Debian has one for each major version outside the path.
    private static func findTools() throws -> String {
        var matches = glob_t()
        defer { globfree(&matches) }
        if glob("/usr/lib/postgresql/*/bin/initdb", 0, nil, &matches) == 0, let paths = matches.gl_pathv {
            if let path = paths[Int(matches.gl_pathc) - 1] {
                return String(String(cString: path).dropLast("initdb".count))
            }
        }
        throw Unavailable(description: "PostgreSQL's initdb was not found: install the package postgresql")
    }
}

/// Runs a program to its end. Only tests use it, for PostgreSQL's tools.
enum Subprocess {
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    /// Runs `arguments[0]`, found through PATH, and discards its output. Blocks the calling thread.
    /// - Throws: ``Failed`` when it cannot be started or returns another status than 0.
    static func run(_ arguments: [String]) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (descriptor, flags) in [(0, O_RDONLY), (1, O_WRONLY), (2, O_WRONLY)] as [(CInt, CInt)] {
            posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", flags, 0)
        }
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
        defer { for word in words { free(word) } }
        words.append(nil)
        var process = pid_t()
        let code = posix_spawnp(&process, arguments[0], &actions, nil, words, environ)
        guard code == 0 else { throw Failed(description: "\(arguments[0]): \(String(cString: strerror(code)))") }
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { throw Failed(description: "waitpid: \(errno)") }
        }
        guard status == 0 else {
            throw Failed(description: "\(arguments.joined(separator: " ")) ended with status \(status >> 8)")
        }
    }
}
