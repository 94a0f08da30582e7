import Foundation
import Glibc
import HTTPCore
import SalternServer
import Testing

@testable import saltern

@Suite struct LogWriterTests {
    private static func pipe() throws -> (read: CInt, write: CInt) {
        var ends: [CInt] = [0, 0]
        try #require(Glibc.pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    @Sendable private static func time() -> UTCTimestamp { UTCTimestamp(microsecondsSinceEpoch: 7_000_000) }

    private static func line(_ number: Int) -> [UInt8] {
        Array("\(number) \(String(repeating: "x", count: 60_000))\n".utf8)
    }

    @Test(arguments: [false, true])
    func `a reader that has stopped holds up neither requests nor the end, and misses nothing when it goes on`(
        isNonBlocking: Bool
    ) async throws {
        let ends = try Self.pipe()
        if isNonBlocking { #expect(fcntl(ends.write, F_SETFL, O_NONBLOCK) == 0) }
        let writer = LogWriter(descriptor: ends.write, now: Self.time)
        let lines = (0..<40).map(Self.line)
        for line in lines { writer.write(ZeroizingBuffer(line), level: .info) }
        #expect(!writer.flush(within: .milliseconds(300)))

        let expected = lines.flatMap { $0 }
        let reader = Task.detached {
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while bytes.count < expected.count {
                let count = Glibc.read(ends.read, &buffer, buffer.count)
                guard count > 0 else { break }
                bytes += buffer[..<count]
            }
            return bytes
        }
        #expect(await reader.value == expected)
        #expect(writer.flush(within: .seconds(60)))
    }

    @Test func `beyond four megabytes lines are dropped and counted`() async throws {
        let ends = try Self.pipe()
        let writer = LogWriter(descriptor: ends.write, now: Self.time)
        for number in 0..<200 { writer.write(ZeroizingBuffer(Self.line(number)), level: .info) }
        let reader = Task.detached {
            var text = ""
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while !text.contains("log_lines_dropped") {
                let count = Glibc.read(ends.read, &buffer, buffer.count)
                guard count > 0 else { break }
                text = String(text.suffix(200)) + String(decoding: buffer[..<count], as: UTF8.self)
            }
            return text
        }
        #expect(await reader.value.contains(#""level":"error","event":"log_lines_dropped","count":"#))
        #expect(writer.droppedLines > 0)
    }

    private static func note(_ count: Int) -> String {
        #"{"time":"1970-01-01T00:00:07.000Z","level":"error","event":"log_lines_dropped","count":"# + "\(count)}\n"
    }

    /// Lets a descriptor be that of a new, empty file, and returns what reads it.
    private static func makeFile(of descriptor: CInt) throws -> () -> String {
        let path = FileManager.default.temporaryDirectory.appending(path: "log-\(UUID().uuidString)")
        #expect(FileManager.default.createFile(atPath: path.path(), contents: nil))
        let file = try FileHandle(forUpdating: path)
        try FileManager.default.removeItem(at: path)
        #expect(dup2(file.fileDescriptor, descriptor) == descriptor)
        return {
            try? file.seek(toOffset: 0)
            return String(decoding: file.availableData, as: UTF8.self)
        }
    }

    @Test func `what a full disk does not take is counted, and said when there is room again`() throws {
        let descriptor = open("/dev/full", O_WRONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
        let writer = LogWriter(descriptor: descriptor, now: Self.time)
        for number in 0..<3 {
            writer.write(ZeroizingBuffer("\(number)\n".utf8), level: .info)
            #expect(writer.flush(within: .seconds(60)))
        }
        let read = try Self.makeFile(of: descriptor)
        writer.write(ZeroizingBuffer("after\n".utf8), level: .info)
        #expect(writer.flush(within: .seconds(60)))
        #expect(read() == Self.note(3) + "after\n")
        #expect(writer.droppedLines == 3)
    }

    @Test func `a line that was written in part is no part of the next one`() async throws {
        signal(SIGPIPE, SIG_IGN)
        let ends = try Self.pipe()
        let writer = LogWriter(descriptor: ends.write, now: Self.time)
        // More than a pipe holds.
        let torn = [UInt8](repeating: 0x78, count: 2 * 1_024 * 1_024) + Array("\n".utf8)
        writer.write(ZeroizingBuffer(torn + Array("lost\n".utf8)), level: .info)
        var byte: UInt8 = 0
        #expect(Glibc.read(ends.read, &byte, 1) == 1)
        close(ends.read)
        #expect(writer.flush(within: .seconds(60)))
        let read = try Self.makeFile(of: ends.write)
        writer.write(ZeroizingBuffer("after\n".utf8), level: .info)
        #expect(writer.flush(within: .seconds(60)))
        #expect(read() == "\n" + Self.note(2) + "after\n")
        #expect(writer.droppedLines == 2)
    }

    @Test func `lines are lost from the first one on that is not whole`() {
        let lines = Array("ab\ncd\nef\n".utf8)
        let expected: [(count: Int, isTorn: Bool)] = [
            (3, false), (3, true), (2, true), (2, false), (2, true), (1, true), (1, false), (1, true), (0, true),
            (0, false),
        ]
        for (end, expected) in expected.enumerated() {
            var losses = LogLosses()
            losses.note(lines, writtenUpTo: end)
            #expect(losses.count == expected.count, "\(end)")
            #expect(losses.isTorn == expected.isTorn, "\(end)")
        }
    }
}

@Suite struct SignalStateMachineTests {
    @Test func `a server that is taken over from before it has started stops all the same, once`() {
        var machine = SignalStateMachine()
        #expect(machine.takenOver() == .tell(.stop))
        machine.started()
        #expect(machine.takenOver() == SignalStateMachine.Action.none)
        #expect(machine.received(.stop) == .die)
    }

    @Test func `a signal to stop ends a server that has not begun, and lets one that serves finish`() {
        var starting = SignalStateMachine()
        #expect(starting.received(.reload) == .tell(.reload))
        #expect(starting.received(.stop) == .exit)
        var serving = SignalStateMachine()
        serving.started()
        #expect(serving.received(.reload) == .tell(.reload))
        #expect(serving.received(.stop) == .tell(.stop))
    }

    @Test func `a second signal to stop ends the process at once`() {
        var machine = SignalStateMachine()
        machine.started()
        _ = machine.received(.stop)
        #expect(machine.received(.reload) == SignalStateMachine.Action.none)
        #expect(machine.received(.stop) == .die)
    }
}

@Suite struct TrimPolicyTests {
    private static let mebibyte = 1_048_576

    @Test func `free memory is given back when much has become free since the last time, and again only then`() {
        var policy = TrimPolicy()
        for free in [10, 12, 18] { #expect(policy.isDue(free: free * Self.mebibyte) == false) }
        #expect(policy.isDue(free: 19 * Self.mebibyte) == true)
        // What was given back still counts as free.
        #expect(policy.isDue(free: 19 * Self.mebibyte) == false)
    }

    @Test func `what was in use at every look and is free at the end is given back`() {
        var policy = TrimPolicy()
        for free in [5, 1, 3, 2] { #expect(policy.isDue(free: free * Self.mebibyte) == false) }
        #expect(policy.isDue(free: 120 * Self.mebibyte) == true)
        #expect(policy.isDue(free: 4 * Self.mebibyte) == false)
        #expect(policy.isDue(free: 119 * Self.mebibyte) == true)
    }
}

@Suite struct ProcessLimitsTests {
    @Test func `the limit of descriptors is raised as far as it goes`() {
        var limit = rlimit()
        #expect(getrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit) == 0)
        #expect(ProcessLimits.raiseDescriptors() == Int(clamping: limit.rlim_max))
    }
}
