internal import Cryptography
internal import HTTPCore

extension JSONValue {
    /// An item as part of a problem.
    init(item: Item) {
        var writer = JSONWriter(capacity: item.jsonCapacity)
        writer.object { writer in item.write(to: &writer) }
        self = (try? JSONParser().parse(writer.finish())) ?? .null
    }
}
