import CommandLineKit
import Foundation
import Postgres

/// A program of PostgreSQL, such as `pg_dump`, that runs until it ends or a signal ends it.
struct DatabaseProgram {
    let name: String
    let console: Console
    /// The program's variables. They contain its secrets, which must not be among its arguments.
    private var environment: [String: String]

    /// Variables that change the input and output of PostgreSQL's programs. Variables for connections are passed on.
    private static let textVariables: Set = [
        "LANGUAGE", "PGCLIENTENCODING", "PGDATESTYLE", "PGGEQO", "PGTZ", "PG_COLOR", "PSQLRC",
    ]

    /// The number of last lines that a failure quotes.
    private static let rememberedLines = 5
    /// The time that a program has to end after a signal. It cancels at the server first, which may not reply.
    private static let patience = DispatchTimeInterval.seconds(5)

    init(_ name: String, _ console: Console, password: String? = nil, environment: [String: String] = [:]) {
        self.name = name
        self.console = console
        // This program's settings contain passwords of other roles.
        let inherited = console.environment.filter { variable, _ in
            !variable.hasPrefix("SALTERN_") && !Self.textVariables.contains(variable)
        }
        self.environment = inherited.merging(environment) { _, new in new }
        // Its messages are parsed.
        self.environment["LC_ALL"] = "C"
        self.environment["PGCLIENTENCODING"] = "UTF8"
        if let password { self.environment["PGPASSWORD"] = password }
    }

    /// Runs the program. A termination signal ends it first.
    /// - Parameters:
    ///   - input: Its standard input, from the beginning.
    ///   - output: The destination of its standard output.
    ///   - line: Receives each line of its standard error.
    /// - Throws: ``CommandFailure`` with its last lines, or with the code `interrupted` after a termination signal.
    func run(
        _ words: [String], input: OpenFile, output: OpenFile, line: (String) -> Void = { _ in }
    ) throws {
        let complaints = Pipe.notInherited()
        try input.rewind()
        let child = try start(
            words,
            ChildProcess.Streams(
                input: input.descriptor, output: output.descriptor,
                error: complaints.fileHandleForWriting.fileDescriptor))
        try complaints.fileHandleForWriting.close()
        let interruption = endedBySignals(child, by: SIGTERM)
        var last: [String] = []
        for text in Lines(of: complaints.fileHandleForReading) {
            line(text)
            last = (last + [text]).suffix(Self.rememberedLines)
        }
        let status = child.wait()
        for wish in [console.wish, interruption.wish].compactMap(\.self) where wish.isThere {
            throw wish.fulfilled("ended by a signal")
        }
        guard status == 0 else {
            throw failure(status, last)
        }
    }

    /// Starts the program. The caller waits for it.
    func start(_ words: [String], _ streams: ChildProcess.Streams) throws(CommandFailure) -> ChildProcess {
        try ChildProcess(["/usr/bin/env", name] + words, environment: environment, streams: streams, isApart: true)
    }

    /// Ends the program after a termination signal, as long as the returned value lives. A signal that has already
    /// arrived counts.
    /// - Parameter first: The signal that is sent to it first.
    func endedBySignals(_ child: ChildProcess, by first: Int32) -> Interruption {
        let end: @Sendable (Int) -> Void = { count in
            child.send(count > 1 ? SIGKILL : first)
            DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { child.send(SIGKILL) }
        }
        let interruption = Interruption(onSignal: end)
        if console.wish?.isThere ?? false { end(1) }
        return interruption
    }

    /// Returns the reason of its failure.
    /// - Parameter last: Its last lines.
    func failure(_ status: Int32, _ last: [String]) -> CommandFailure {
        if status == 127 {
            return CommandFailure(
                "\(name) is not installed; Debian has it in the package postgresql-client", status: 1,
                code: "program_missing")
        }
        // Output from before a signal is not the reason.
        if let signal = ChildProcess.signal(of: status) {
            return CommandFailure("\(name) was ended by signal \(signal) (\(String(cString: strsignal(signal))))")
        }
        return CommandFailure(last.isEmpty ? ["\(name) ended with \(status)"] : last.suffix(Self.rememberedLines))
    }

    /// Runs the program with a text as its standard input.
    /// - Returns: Its standard output.
    @discardableResult
    func run(_ words: [String], input: String = "", line: (String) -> Void = { _ in }) throws -> String {
        try run(words, input: OpenFile(contents: input), line: line)
    }

    /// Runs the program with a file as its standard input.
    /// - Returns: Its standard output.
    @discardableResult
    func run(_ words: [String], input: OpenFile, line: (String) -> Void = { _ in }) throws -> String {
        let spoken = try OpenFile(contents: "")
        try run(words, input: input, output: spoken, line: line)
        return try spoken.contents()
    }

    /// Reads a pipe line by line, until all writers have closed it.
    struct Lines: Sequence, IteratorProtocol {
        private let handle: FileHandle
        private var pending: [UInt8] = []
        private var isOver = false

        init(of handle: FileHandle) { self.handle = handle }

        mutating func next() -> String? {
            while true {
                if let end = pending.firstIndex(of: UInt8(ascii: "\n")) {
                    defer { pending.removeSubrange(...end) }
                    return String(decoding: pending[..<end], as: UTF8.self)
                }
                if isOver {
                    defer { pending = [] }
                    return pending.isEmpty ? nil : String(decoding: pending, as: UTF8.self)
                }
                let more = handle.availableData
                isOver = more.isEmpty
                pending += more
            }
        }
    }
}

extension Pipe {
    /// Makes a pipe that child processes do not inherit. It ends when this process closes it.
    static func notInherited() -> Pipe {
        let pipe = Pipe()
        for end in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
            _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
        }
        return pipe
    }
}

extension ProgressBar {
    /// Counts a table for each line of `pg_dump --verbose` or `pg_restore --verbose` that starts one.
    mutating func follow(_ line: String, _ done: inout Int, of total: Int) {
        guard line.contains("dumping contents of table") || line.contains("processing data for table") else { return }
        let table = line.split(separator: "\"").dropFirst().first.map(String.init) ?? ""
        show(done, of: total, note: "now \(table.replacingOccurrences(of: "saltern.", with: ""))")
        done += 1
    }
}

/// The version of `pg_dump`, which must be at least that of the server.
enum DumpProgram {
    /// Returns the major version of the `pg_dump` that a backup would call, such as 15.
    /// - Throws: ``CommandFailure`` when there is none, or when its reply has no version.
    static func majorVersion(_ console: Console) async throws -> Int {
        let reply = try await onOwnThread { try DatabaseProgram("pg_dump", console).run(["--version"]) }
        guard let version = majorVersion(in: reply) else {
            throw CommandFailure("pg_dump --version has an unknown form: \(reply)")
        }
        return version
    }

    /// Returns 15 for `pg_dump (PostgreSQL) 15.4 (Debian 15.4-1)`.
    static func majorVersion(in reply: String) -> Int? {
        reply.firstMatch(of: /\(PostgreSQL\) ([0-9]+)/).flatMap { Int($0.1) }
    }

    /// Returns the reason why a `pg_dump` cannot read a server; nil if it can.
    /// - Parameters:
    ///   - program: The major version of `pg_dump`.
    ///   - server: `server_version_num`: 170002 for 17.2.
    static func obstacle(program: Int, server: Int32) -> String? {
        let server = Int(server) / 10_000
        guard program < server else { return nil }
        return "pg_dump is of PostgreSQL \(program) and the server of PostgreSQL \(server), and pg_dump reads no newer "
            + "server: install postgresql-client-\(server)"
    }

    /// Returns the reason why the same release's programs could not restore a backup into the server; nil if they
    /// could.
    ///
    /// From 17 on, `pg_restore` writes a setting (`transaction_timeout`) that older servers reject.
    static func obstacleToRestore(program: Int, server: Int32) -> String? {
        let server = Int(server) / 10_000
        guard program >= 17, server < 17 else { return nil }
        return "pg_restore is of PostgreSQL \(program), and writes a setting that the server, of PostgreSQL \(server), "
            + "rejects: a restore would fail. Install postgresql-client-\(server)"
    }
}
