import Testing

@testable import Postgres

@Suite struct OutgoingBatchTests {
    @Test func `only reads share a batch, and every request may follow a sync`() {
        let kinds = [OutgoingBatch.Kind.readOnly, .single, .block, .group]
        for open in kinds {
            for next in kinds {
                var batch = OutgoingBatch()
                #expect(batch.admits(next))
                batch.add(open)
                #expect(batch.admits(next) == (open == next && [.readOnly, .group].contains(open)), "\(open), \(next)")
                batch.end()
                #expect(batch.admits(next))
            }
        }
    }

    @Test func `a command of the connection needs a sync before the next request`() {
        var batch = OutgoingBatch()
        batch.addCommand()
        #expect(!batch.admits(.readOnly) && !batch.admits(.group))
    }

    @Test func `the kind depends on the request, outside of a group`() {
        let batch = OutgoingBatch()
        #expect(batch.kindOfNext(isReadOnly: true, isBlock: false) == .readOnly)
        #expect(batch.kindOfNext(isReadOnly: false, isBlock: false) == .single)
        #expect(batch.kindOfNext(isReadOnly: false, isBlock: true) == .block)
    }

    @Test func `a group is complete after all of its members`() {
        var batch = OutgoingBatch()
        batch.expectGroup(2)
        for _ in 0..<2 {
            #expect(batch.isIncomplete)
            let kind = batch.kindOfNext(isReadOnly: true, isBlock: true)
            #expect(kind == .group)
            batch.add(kind)
        }
        #expect(!batch.isIncomplete && batch.kind == .group)
        #expect(batch.kindOfNext(isReadOnly: false, isBlock: false) == .single)
    }

    @Test func `one statement of each request is the first`() {
        var batch = OutgoingBatch()
        for _ in 0..<2 {
            batch.add(.readOnly)
            let isFirst = [batch.takeFirst(), batch.takeFirst(), batch.takeFirst()]
            #expect(isFirst == [true, false, false])
        }
    }
}
