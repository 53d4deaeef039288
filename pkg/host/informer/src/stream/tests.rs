use super::*;

#[tokio::test]
async fn a_body_as_long_as_the_limit_is_read_whole_and_a_longer_one_is_refused() {
    for length in [0, 4] {
        let read = collect(Body::from(vec![b'x'; length]), 4).await.unwrap();
        assert_eq!(read.len(), length);
    }
    for length in [5, 9] {
        let refused = collect(Body::from(vec![b'x'; length]), 4).await;
        assert!(matches!(refused, Err(Fault::PageTooLong(4))), "{length} bytes");
    }
}
