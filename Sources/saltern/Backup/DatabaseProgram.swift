import CommandLineKit
import Foundation
import Postgres

/// A program of PostgreSQL's, such as `pg_dump`, that runs until it ends or somebody wishes that it did.
struct DatabaseProgram {
    let name: String
    let console: Console
    /// What it is told beside the caller's variables: secrets, which must not be among its words.
    private var environment: [String: String]

    /// Variables that change what PostgreSQL's programs read and write. Those that say how to connect are passed on.
    private static let textVariables: Set = [
        "LANGUAGE", "PGCLIENTENCODING", "PGDATESTYLE", "PGGEQO", "PGTZ", "PG_COLOR", "PSQLRC",
    ]

    /// The last lines that it said are enough to know why it failed.
    private static let rememberedLines = 5
    /// How long a program may take to end when it is told to. It tells the server first, which may not answer.
    private static let patience = DispatchTimeInterval.seconds(5)

    init(_ name: String, _ console: Console, password: String? = nil, environment: [String: String] = [:]) {
        self.name = name
        self.console = console
        // Passwords of other roles are in settings of this program.
        let inherited = console.environment.filter { variable, _ in
            !variable.hasPrefix("SALTERN_") && !Self.textVariables.contains(variable)
        }
        self.environment = inherited.merging(environment) { _, new in new }
        // Its messages are read.
        self.environment["LC_ALL"] = "C"
        self.environment["PGCLIENTENCODING"] = "UTF8"
        if let password { self.environment["PGPASSWORD"] = password }
    }

    /// Runs it. A signal to end ends it first.
    /// - Parameters:
    ///   - input: Its standard input, from the beginning.
    ///   - output: Where its standard output goes.
    ///   - line: Is told each line of its standard error.
    /// - Throws: ``CommandFailure`` with its last words, or when a signal has come while the console's wish is awaited.
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

    /// Starts it, for who waits for it.
    func start(_ words: [String], _ streams: ChildProcess.Streams) throws(CommandFailure) -> ChildProcess {
        try ChildProcess(["/usr/bin/env", name] + words, environment: environment, streams: streams, isApart: true)
    }

    /// Has signals to end end it, while what this returns lives, and one that has come already.
    /// - Parameter first: What it is told first.
    func endedBySignals(_ child: ChildProcess, by first: Int32) -> Interruption {
        let end: @Sendable (Int) -> Void = { count in
            child.send(count > 1 ? SIGKILL : first)
            DispatchQueue.global().asyncAfter(deadline: .now() + Self.patience) { child.send(SIGKILL) }
        }
        let interruption = Interruption(onSignal: end)
        if console.wish?.isThere ?? false { end(1) }
        return interruption
    }

    /// Why it has failed.
    /// - Parameter last: Its last words.
    func failure(_ status: Int32, _ last: [String]) -> CommandFailure {
        if status == 127 {
            return CommandFailure(
                "\(name) is not there; in Debian it is in the package postgresql-client", status: 1,
                code: "program_missing")
        }
        // What a program said before somebody else ended it is not why.
        if let signal = ChildProcess.signal(of: status) {
            return CommandFailure("\(name) was ended by signal \(signal) (\(String(cString: strsignal(signal))))")
        }
        return CommandFailure(last.isEmpty ? ["\(name) ended with \(status)"] : last.suffix(Self.rememberedLines))
    }

    /// Runs it with a text as its standard input.
    /// - Returns: Its standard output.
    @discardableResult
    func run(_ words: [String], input: String = "", line: (String) -> Void = { _ in }) throws -> String {
        try run(words, input: OpenFile(contents: input), line: line)
    }

    /// Runs it with a file as its standard input.
    /// - Returns: Its standard output.
    @discardableResult
    func run(_ words: [String], input: OpenFile, line: (String) -> Void = { _ in }) throws -> String {
        let spoken = try OpenFile(contents: "")
        try run(words, input: input, output: spoken, line: line)
        return try spoken.contents()
    }

    /// What comes through a pipe, a line at a time, until everybody has closed it.
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
    /// A pipe of which a program that is started has no end but the one that it is given: so it ends when it is closed here.
    static func notInherited() -> Pipe {
        let pipe = Pipe()
        for end in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
            _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
        }
        return pipe
    }
}

extension ProgressBar {
    /// Counts a table when a line of `pg_dump --verbose` or `pg_restore --verbose` begins one.
    mutating func follow(_ line: String, _ done: inout Int, of total: Int) {
        guard line.contains("dumping contents of table") || line.contains("processing data for table") else { return }
        let table = line.split(separator: "\"").dropFirst().first.map(String.init) ?? ""
        show(done, of: total, note: "now \(table.replacingOccurrences(of: "saltern.", with: ""))")
        done += 1
    }
}
