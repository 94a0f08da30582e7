import Cryptography
import Foundation
import Testing

@testable import SalternClient

/// Attachments are found in the encodings in which an app can store them.
@Suite struct AttachmentSearchTests {
    private static let made = SalternClient.Attachment(
        id: .random(), byteCount: 1_000_000, digest: [UInt8](repeating: 1, count: 32), properties: ["name": "ä/\""],
        chunkByteCount: 524_288, chunks: [.random(), .random()], inline: nil)

    private struct Value<Photo: Codable>: Codable {
        var name = "Cádiz"
        var photos: [[String: Photo]]

        init(_ photo: Photo) { photos = [[:], ["a": photo]] }
    }

    private static var manifest: [UInt8] { made.body().withUnsafeBytes { [UInt8]($0) } }

    private static func json(_ value: some Encodable) throws -> SecureBytes {
        SecureBytes(copying: [UInt8](try JSONEncoder().encode(value)))
    }

    private static func list(_ value: some Encodable, _ format: PropertyListSerialization.PropertyListFormat) throws
        -> SecureBytes
    {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = format
        return SecureBytes(copying: [UInt8](try encoder.encode(value)))
    }

    private static func bodies() throws -> [String: SecureBytes] {
        let encoded = try JSONEncoder().encode(Value(made))
        let text = String(decoding: encoded, as: UTF8.self)
        return [
            "the manifest": made.body(),
            "a value": try json(Value(made)),
            "a value with escapes": SecureBytes(
                copying: text.replacing("saltern-attachment", with: #"\u0073altern-attachment"#).utf8),
            "the manifest as data": try json(Value(Data(manifest))),
            "the manifest as bytes": try json(Value(manifest)),
            "the manifest as text": try json(Value(String(decoding: manifest, as: UTF8.self))),
            "an encoded value as text": try json(Value(text)),
            "an encoded value as data": try json(Value(encoded)),
            "a value behind a space as data": try json(Value(Data(" ".utf8) + encoded)),
            "a value behind two spaces as data": try json(Value(Data("  ".utf8) + encoded)),
            "a binary property list": try list(Value(made), .binary),
            "a property list as XML": try list(Value(made), .xml),
            "the manifest in a property list": try list(Value(Data(manifest)), .binary),
            "a property list as data in JSON": try json(
                Value(Data(try list(Value(made), .binary).withUnsafeBytes { Data($0) }))),
        ]
    }

    @Test func `an attachment is found in every encoding`() throws {
        for (name, body) in try Self.bodies() {
            let (found, isWhole) = Attachment.all(in: body)
            #expect(found == [Self.made], "\(name)")
            #expect(isWhole, "\(name)")
        }
    }

    @Test func `what cannot be read keeps every chunk`() throws {
        let later = String(decoding: Self.manifest, as: UTF8.self).replacing("attachment-1\n", with: "attachment-2\n")
        let strange = String(decoding: Self.manifest, as: UTF8.self).replacing("\"digest\"", with: "\"sum\"")
        let unreadable: [String: SecureBytes] = [
            "a later manifest": SecureBytes(copying: later.utf8),
            "a manifest with other members": SecureBytes(copying: strange.utf8),
            "a later manifest as data": try Self.json(Value(Data(later.utf8))),
            "a later manifest as text": try Self.json(Value(later)),
            "a later version in a value": SecureBytes(copying: #"{"a":[{"saltern-attachment":2,"id":"x"}]}"#.utf8),
            "an encoding that is not known": SecureBytes(
                copying: [0xff, 0x01] + Array("saltern-attachment \u{1} chunkByteCount".utf8)),
            "base64 within other text": try Self.json(
                Value("data:application/octet-stream;base64," + Data(Self.manifest).base64EncodedString())),
        ]
        for (name, body) in unreadable { #expect(!Attachment.all(in: body).isWhole, "\(name)") }
    }

    @Test func `other content names nothing`() throws {
        let bodies = [
            "", "a note", #"they call it "saltern-attachment""#, "saltern-attachment-1\nis how a manifest begins",
            #"{"text":"saltern-attachment"}"#, #"{"text":"\u0041 \u0000"}"#, "saltern-attachment-",
            #"{"numbers":[1,2,300,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]}"#,
        ]
        for body in bodies {
            let (found, isWhole) = Attachment.all(in: SecureBytes(copying: body.utf8))
            #expect(found.isEmpty && isWhole, "\(body)")
        }
        let random = SecureRandom.bytes(600_000)
        #expect(Attachment.all(in: SecureBytes(copying: random)).isWhole)
    }
}
