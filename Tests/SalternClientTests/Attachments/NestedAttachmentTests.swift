import Cryptography
import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// Attachments that stand in values of an app, and the sweep that a sync does by itself.
@Suite struct NestedAttachmentTests {
    private struct Day: Codable, Sendable {
        var photos: [SalternClient.Attachment]
    }

    private struct Trip: Codable, Sendable {
        var name: String
        var days: [Day]
        var cover: SalternClient.Attachment?
    }

    private struct Name: Codable, Sendable { var name: String }

    private static let day: TimeInterval = 86_400
    private static let password = Password("correct horse")

    private static func content(_ byte: UInt8) -> SecureBytes {
        SecureBytes(copying: [UInt8](repeating: byte, count: 600_000))
    }

    @Test func `an attachment counts wherever it stands in an app's value`() async throws {
        try await LiveServer.with { server in
            let phone = try await Vault.signUp(Device("phone", server).settings, userid: "ada", password: Self.password)
            let photo = try await phone.attach(AttachmentSource(Self.content(1)))
            let cover = try await phone.attach(AttachmentSource(SecureBytes(copying: [1, 2, 3])))
            let trips = phone.collection("trips", of: Trip.self)
            let id = try await trips.put(
                Trip(name: "Cadiz", days: [Day(photos: []), Day(photos: [photo])], cover: cover))
            try await phone.sync()
            // An older version of the app, which knows nothing of photos.
            try await phone.collection("trips", of: Name.self).put(Name(name: "Cádiz"), id)
            try await phone.sync()
            let now = Date()
            for days in [0.0, 400, 800] {
                #expect(
                    try await phone.sweepChunks(
                        at: now.addingTimeInterval(days * Self.day), age: Int64(days * Self.day)) == 0)
            }
            let laptop = try await Vault.logIn(
                Device("laptop", server).settings, userid: "ada", password: Self.password)
            try await laptop.sync()
            for days in [0.0, 400, 800] {
                #expect(
                    try await laptop.sweepChunks(
                        at: now.addingTimeInterval(days * Self.day), age: Int64(days * Self.day)) == 0)
            }
            let trip = try #require(await laptop.collection("trips", of: Trip.self)[id])
            #expect(trip.name == "Cádiz")
            #expect(try await laptop.content(of: trip.days[1].photos[0]) == Self.content(1))
            #expect(try await laptop.content(of: try #require(trip.cover)) == SecureBytes(copying: [1, 2, 3]))
            // What is named no more is swept.
            var rest = trip
            rest.days = []
            try await laptop.collection("trips", of: Trip.self).put(rest, id)
            try await laptop.sync()
            #expect(
                try await laptop.sweepChunks(at: now.addingTimeInterval(1_200 * Self.day), age: Int64(1_200 * Self.day))
                    == 0)
            #expect(
                try await laptop.sweepChunks(at: now.addingTimeInterval(1_240 * Self.day), age: Int64(1_240 * Self.day))
                    == 2)
        }
    }

    @Test func `an export names the values whose attachments it does not contain`() async throws {
        try await LiveServer.with { server in
            let device = try Device("phone", server)
            let phone = try await Vault.signUp(device.settings, userid: "ada", password: Self.password)
            let photo = try await phone.attach(AttachmentSource(Self.content(1)))
            let cover = try await phone.attach(AttachmentSource(SecureBytes(copying: [1, 2, 3])))
            let long = try await phone.attach(AttachmentSource(Self.content(2)))
            let trips = phone.collection("trips", of: Trip.self)
            let id = try await trips.put(Trip(name: "Cadiz", days: [Day(photos: [photo])], cover: cover))
            try await trips.put(Trip(name: "Rome", days: [], cover: cover))
            try await phone.put(PlainItem(title: "a", body: long.body()), .random(), in: "files")
            let file = URL(filePath: device.folder.path + "/documents.ndjson")
            #expect(try await phone.exportDocuments(to: file) == DocumentExport(documents: 3, incomplete: [id]))
            let last = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").last
            #expect(last == #"{"documents":3,"incomplete":1,"type":"end"}"#)
            #expect(try await phone.importDocuments(from: file) == DocumentImport(unchanged: 3))
        }
    }

    @Test func `what is marked as an attachment and cannot be read keeps every chunk`() {
        let later = SecureBytes(copying: #"{"a":[{"saltern-attachment":2,"id":"x"}]}"#.utf8)
        #expect(!Attachment.all(in: later).isWhole)
        let text = SecureBytes(copying: #"they call it "saltern-attachment""#.utf8)
        #expect(Attachment.all(in: text).isWhole)
    }

    @Test func `a sync sweeps by itself, as the store ages`() async throws {
        try await LiveServer.with { server in
            let phone = try await Vault.signUp(Device("phone", server).settings, userid: "ada", password: Self.password)
            let id = ItemID.random()
            let made = try await phone.attach(AttachmentSource(Self.content(1)))
            try await phone.put(PlainItem(body: made.body()), id, in: "photos")
            try await phone.sync()
            try await phone.put(PlainItem(body: SecureBytes(copying: [1])), id, in: "photos")
            try await phone.sync()
            let now = Date()
            func items(after days: Double) async throws -> Int64 {
                _ = await phone.sweepWhenDue(at: now.addingTimeInterval(days * Self.day), age: Int64(days * Self.day))
                return try await phone.account().usage.items
            }
            // Each sync has swept already, at age 1: no reading of a clock has made the store older.
            for days in [2, 9, 16, 23, 29.5] { #expect(try await items(after: days) == 3, "\(days)") }
            #expect(await phone.sweepWhenDue(at: now.addingTimeInterval(45 * Self.day), age: nil) == nil)
            #expect(try await items(after: 36) == 1)
        }
    }
}
